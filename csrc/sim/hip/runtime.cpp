#include "hip/runtime.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace fasim::hip {

Runtime& Runtime::get() {
  static Runtime* const runtime = [] {
    auto* made = new Runtime;
    made->choose_timing();
    return made;
  }();
  return *runtime;
}

void Runtime::choose_timing() {
  const char* asked = std::getenv("FLASHATTN_SIM_TIMING");
  const bool decided = asked != nullptr && *asked != '\0';
  device.set_timed(decided ? std::string_view(asked) != "0" : timing_events > 0);
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
