#include "hip/launch.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "device/launch_limits.h"
#include "hip/abi.h"
#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

// The codes that AMD's runtime gives for the same mistakes.
hipError_t code_of(LimitKind kind) {
  switch (kind) {
    case LimitKind::configuration:
      return hipErrorInvalidConfiguration;
    case LimitKind::lds:
      return hipErrorInvalidValue;
    case LimitKind::kernel_build:
      return hipErrorLaunchFailure;
  }
  return hipErrorUnknown;
}

std::vector<uint8_t> from_params(const KernelMetadata& kernel, void** params) {
  std::vector<uint8_t> bytes(kernel.explicit_bytes(), 0);
  size_t index = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.hidden()) continue;
    if (params == nullptr || params[index] == nullptr)
      fail(hipErrorInvalidValue, "kernel " + kernel.name + ": kernelParams[" +
                                     std::to_string(index) + "] is a null pointer");
    std::memcpy(bytes.data() + argument.offset, params[index++], argument.size);
  }
  return bytes;
}

std::vector<uint8_t> from_extra(const KernelMetadata& kernel, void** extra) {
  const void* buffer = nullptr;
  const size_t* size = nullptr;
  for (int i = 0; reinterpret_cast<uintptr_t>(extra[i]) != kLaunchParamEnd; i += 2) {
    const auto marker = reinterpret_cast<uintptr_t>(extra[i]);
    if (marker == kLaunchParamBuffer)
      buffer = extra[i + 1];
    else if (marker == kLaunchParamSize)
      size = static_cast<const size_t*>(extra[i + 1]);
    else
      fail(hipErrorInvalidValue, "extra[" + std::to_string(i) + "] is no HIP_LAUNCH_PARAM marker");
  }
  require(buffer, "extra: HIP_LAUNCH_PARAM_BUFFER_POINTER");
  require(size, "extra: HIP_LAUNCH_PARAM_BUFFER_SIZE");
  // A struct of the caller's may end in padding; some pass the whole segment with its hidden part.
  const size_t needed = kernel.explicit_bytes(), padded = (needed + 15) / 16 * 16;
  if ((*size < needed || *size > padded) && *size != kernel.kernarg_bytes)
    fail(hipErrorInvalidValue, "kernel " + kernel.name + ": the argument buffer has " +
                                   std::to_string(*size) + " bytes, the arguments have " +
                                   std::to_string(needed) + "; allowed: " + std::to_string(needed) +
                                   " to " + std::to_string(padded) + ", or the kernarg segment's " +
                                   std::to_string(kernel.kernarg_bytes));
  const auto* begin = static_cast<const uint8_t*>(buffer);
  return {begin, begin + needed};
}

}  // namespace

void launch(const Kernel& kernel, const LaunchCall& call) {
  clear_fault_text();
  require_stream(call.stream);
  Device& device = Runtime::get().device;
  if (const auto broken = broken_limit(device.card(), kernel.metadata, call.shape))
    fail(code_of(broken->kind), "kernel " + kernel.metadata.name + ": " + broken->text);
  if (call.params != nullptr && call.extra != nullptr)
    fail(hipErrorInvalidValue, "kernelParams and extra are both set; only one may be");
  const bool packed = call.extra != nullptr;
  device.launch(
      kernel, call.shape,
      packed ? from_extra(kernel.metadata, call.extra) : from_params(kernel.metadata, call.params));
}

}  // namespace fasim::hip
