#include "hip/api.h"

#include <cstdio>
#include <cstdlib>
#include <new>

#include "check/fault.h"
#include "device/load_error.h"

namespace fasim::hip {
namespace {

// An error stays until hipGetLastError reads it; calls that succeed leave it alone.
thread_local hipError_t t_last_error = hipSuccess;
thread_local std::string t_fault_text;

hipError_t code_of(LoadFailure kind) {
  switch (kind) {
    case LoadFailure::invalid_image:
      return hipErrorInvalidImage;
    case LoadFailure::no_binary:
      return hipErrorNoBinaryForGpu;
    case LoadFailure::not_supported:
      return hipErrorNotSupported;
    case LoadFailure::out_of_memory:
      return hipErrorOutOfMemory;
  }
  return hipErrorUnknown;
}

hipError_t keep(const char* function, hipError_t code, const std::string& text, int level) {
  t_last_error = code;
  t_fault_text = std::string(function) + ": " + text;
  log(level, t_fault_text);
  return code;
}

int log_level() {
  const char* text = std::getenv("FLASHATTN_SIM_LOG");
  return text == nullptr ? 1 : std::atoi(text);
}

}  // namespace

void fail(hipError_t code, const std::string& text) { throw ApiFailure(code, text); }

void require(const void* pointer, const char* argument) {
  if (pointer == nullptr) fail(hipErrorInvalidValue, std::string(argument) + " is a null pointer");
}

hipError_t report_failure(const char* function) noexcept {
  try {
    throw;
  } catch (const ApiFailure& failure) {
    return keep(function, failure.code, failure.what(), 2);
  } catch (const SimFault& fault) {
    return keep(function, hipErrorLaunchFailure, fault.what(), 1);
  } catch (const LoadError& error) {
    return keep(function, code_of(error.kind), error.what(), 2);
  } catch (const std::bad_alloc&) {
    return keep(function, hipErrorOutOfMemory, "the host has no memory left", 2);
  } catch (const std::exception& error) {
    return keep(function, hipErrorUnknown, error.what(), 1);
  }
}

hipError_t last_error() { return t_last_error; }
void clear_last_error() { t_last_error = hipSuccess; }

const char* fault_text() { return t_fault_text.empty() ? nullptr : t_fault_text.c_str(); }
void clear_fault_text() { t_fault_text.clear(); }

void log(int level, const std::string& line) {
  if (log_level() >= level) std::fprintf(stderr, "flashattn-sim: %s\n", line.c_str());
}

}  // namespace fasim::hip
