#include "hip/runtime.h"

#include <string>

namespace fasim::hip {

Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

void require_device(int ordinal) {
  if (ordinal != 0)
    fail(hipErrorInvalidDevice, "device=" + std::to_string(ordinal) + ", the only device is 0");
}

void require_stream(const void* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream) return;
  Runtime::get().streams.require(stream);
}

}  // namespace fasim::hip
