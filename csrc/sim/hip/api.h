// What every exported function is made of: it runs inside api(), where a failure becomes an error
// code, the thread's last error and a text.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "hip/error_codes.h"

#define FASIM_API extern "C" __attribute__((visibility("default")))

namespace fasim::hip {

class ApiFailure : public std::runtime_error {
 public:
  ApiFailure(hipError_t code, const std::string& text) : std::runtime_error(text), code(code) {}
  hipError_t code;
};

// `text` names the argument, its value and what is allowed.
[[noreturn]] void fail(hipError_t code, const std::string& text);
// hipErrorInvalidValue unless `pointer` is set.
void require(const void* pointer, const char* argument);

// Turns the exception in flight into an error code; keeps it and its text for the calling thread.
hipError_t report_failure(const char* function) noexcept;

hipError_t last_error();
void clear_last_error();
// Text of the calling thread's last failure; null when there is none.
const char* fault_text();
void clear_fault_text();

// Writes one line to stderr unless FLASHATTN_SIM_LOG is below `level`: 0 nothing, 1 (default)
// faults of kernels and calls that are not implemented, 2 every failing call.
void log(int level, const std::string& line);

template <typename Body>
hipError_t api(const char* function, const Body& body) noexcept {
  try {
    body();
    return hipSuccess;
  } catch (...) {
    return report_failure(function);
  }
}

}  // namespace fasim::hip
