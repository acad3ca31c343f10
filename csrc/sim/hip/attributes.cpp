// hipDeviceGetAttribute.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "hip/api.h"
#include "hip/properties.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

constexpr int kAmd = 10000;  // first number of the AMD-specific attributes
constexpr int kLastCommon = 92, kLastAmd = kAmd + 20;

// Number and value, in order of number. An attribute in the known range that is missing here is a
// feature that the simulated card does not have: 0.
std::array<std::pair<int, int>, 42> attribute_values(const PropertiesR0600& p) {
  return {{
      {0, p.ecc_enabled},
      {3, p.can_map_host_memory},
      {4, p.can_use_host_pointer_for_registered_mem},
      {5, p.clock_rate},
      {8, p.concurrent_kernels},
      {19, p.l2_cache_size},
      {23, p.major},
      {25, p.max_blocks_per_multi_processor},
      {26, p.max_threads_dim[0]},
      {27, p.max_threads_dim[1]},
      {28, p.max_threads_dim[2]},
      {29, p.max_grid_size[0]},
      {30, p.max_grid_size[1]},
      {31, p.max_grid_size[2]},
      {55, p.max_threads_dim[0]},
      {56, p.max_threads_per_block},
      {57, p.max_threads_per_multi_processor},
      {58, static_cast<int>(p.mem_pitch)},
      {59, p.memory_bus_width},
      {60, p.memory_clock_rate},
      {61, p.minor},
      {63, p.multi_processor_count},
      {71, p.regs_per_block},
      {72, p.regs_per_multiprocessor},
      {74, static_cast<int>(p.shared_mem_per_block)},
      {75, static_cast<int>(p.shared_mem_per_block_optin)},
      {76, static_cast<int>(p.shared_mem_per_multiprocessor)},
      {77, p.single_to_double_precision_perf_ratio},
      {78, p.stream_priorities_supported},
      {83, static_cast<int>(p.total_const_mem)},
      // An int cannot hold the 16 GiB; HIP gives the largest int as well.
      {84, static_cast<int>(std::min<size_t>(p.total_global_mem, 2147483647))},
      {85, p.unified_addressing},
      {87, p.warp_size},
      {90, p.host_register_supported},
      {kAmd, p.clock_instruction_rate},
      {kAmd + 1, static_cast<int>(p.arch)},
      {kAmd + 2, static_cast<int>(p.max_shared_memory_per_multi_processor)},
      {kAmd + 3, 906},
      {kAmd + 11, p.is_large_bar},
      {kAmd + 15, p.multi_processor_count},
      {kAmd + 17, p.clock_instruction_rate},
      {kAmd + 18, 1},
  }};
}

}  // namespace

FASIM_API hipError_t hipDeviceGetAttribute(int* value, int attribute, int device) {
  return api(__func__, [&] {
    require(value, "pi");
    require_device(device);
    const bool known = (attribute >= 0 && attribute <= kLastCommon) ||
                       (attribute >= kAmd && attribute <= kLastAmd);
    if (!known) fail(hipErrorInvalidValue, "attr=" + std::to_string(attribute) + " is unknown");
    PropertiesR0600 properties;
    fill(properties, Runtime::get().device.card());
    *value = 0;
    for (const auto& [number, stored] : attribute_values(properties))
      if (number == attribute) *value = stored;
  });
}

}  // namespace fasim::hip
