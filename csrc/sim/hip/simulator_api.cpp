// What this library exports beside HIP, for callers that know that they talk to the simulator.
#include <cstddef>
#include <cstdint>
#include <string>

#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {

// Text of the calling thread's last failed call; valid until that thread's next call. A launch that
// begins clears it. Null: none.
FASIM_API const char* flashattnSimLastFault() { return fault_text(); }

// Wave instructions that all launches since the library was loaded have executed.
FASIM_API uint64_t flashattnSimWaveInstructions() {
  return Runtime::get().device.wave_instructions();
}

// hipHostRegister for memory that kernels may read and not write: HIP has no flag for it. Ends with
// hipHostUnregister.
FASIM_API hipError_t flashattnSimHostRegisterReadOnly(void* pointer, size_t size) {
  return api(__func__, [&] {
    Runtime::get().allocations.register_host(pointer, size, 0, /*read_only=*/true);
  });
}

// Whether launches are timed from now on (events do that by themselves). Results are the same.
FASIM_API void flashattnSimSetTimed(int timed) { Runtime::get().device.set_timed(timed != 0); }

// Whether timed launches run only as many workgroups as their time needs, so that a long one is
// timed in seconds. Its results are incomplete then; for benchmarks, which do not look at them.
FASIM_API void flashattnSimSetSampledOnly(int sampled_only) {
  Runtime::get().device.set_sampled_only(sampled_only != 0);
}

// The last timed launch as JSON, valid until the calling thread asks again; null: none.
FASIM_API const char* flashattnSimLastProfile() {
  const std::vector<std::string> profiles = Runtime::get().device.profiles();
  if (profiles.empty()) return nullptr;
  thread_local std::string profile;
  profile = profiles.back();
  return profile.c_str();
}

// All launches since flashattnSimSetTimed(1) as a JSON list, valid likewise.
FASIM_API const char* flashattnSimProfiles() {
  thread_local std::string list;
  list = "[";
  for (const std::string& profile : Runtime::get().device.profiles())
    list += (list.size() == 1 ? "" : ",") + profile;
  list += "]";
  return list.c_str();
}

FASIM_API const char* flashattnSimVersion() { return FLASHATTN_SIM_VERSION; }

}  // namespace fasim::hip
