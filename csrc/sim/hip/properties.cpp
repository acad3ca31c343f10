#include "hip/properties.h"

#include <cstdio>

namespace fasim::hip {
namespace {

// What both layouts have under the same names. Texture, surface, cooperative-launch, managed-memory
// and peer features stay 0: the facade does not offer them.
template <typename Properties>
void fill_common(Properties& p, const Card& card) {
  std::snprintf(p.name, sizeof(p.name), "%s", card.name);
  std::snprintf(p.gcn_arch_name, sizeof(p.gcn_arch_name), "%s", card.target);
  p.total_global_mem = card.memory_bytes;
  p.shared_mem_per_block = card.lds_bytes;
  p.max_shared_memory_per_multi_processor = card.lds_bytes;
  p.regs_per_block =
      static_cast<int>(card.vgprs_per_simd * card.wave_size * card.simds_per_compute_unit);
  p.warp_size = static_cast<int>(card.wave_size);
  p.max_threads_per_block = static_cast<int>(card.max_group_threads);
  for (int& dimension : p.max_threads_dim) dimension = static_cast<int>(card.max_group_threads);
  p.max_grid_size[0] = static_cast<int>(card.max_grid_x);
  p.max_grid_size[1] = static_cast<int>(card.max_grid_y);
  p.max_grid_size[2] = static_cast<int>(card.max_grid_z);
  p.clock_rate = static_cast<int>(card.clock_khz);
  p.memory_clock_rate = static_cast<int>(card.memory_clock_khz);
  p.memory_bus_width = static_cast<int>(card.memory_bus_bits);
  p.clock_instruction_rate = static_cast<int>(card.wall_clock_khz);
  p.total_const_mem = 2147483647;  // constants are ordinary memory; HIP reports this bound
  p.major = 9;                     // gfx906 is gfx 9.0 stepping 6
  p.minor = 0;
  p.multi_processor_count = static_cast<int>(card.compute_units);
  p.l2_cache_size = static_cast<int>(card.l2_bytes);
  p.max_threads_per_multi_processor =
      static_cast<int>(card.max_waves_per_simd * card.simds_per_compute_unit * card.wave_size);
  p.arch = kArchFeatures;
  p.concurrent_kernels = 1;
  p.can_map_host_memory = 1;
  p.mem_pitch = 2147483647;
  p.ecc_enabled = 1;   // sramecc+ in the target
  p.is_large_bar = 1;  // every device address is a host address
}

}  // namespace

void fill(PropertiesR0000& p, const Card& card) {
  p = {};
  fill_common(p, card);
  p.gcn_arch = 906;
}

void fill(PropertiesR0600& p, const Card& card) {
  p = {};
  fill_common(p, card);
  p.unified_addressing = 1;
  p.host_register_supported = 1;
  p.can_use_host_pointer_for_registered_mem = 1;
  p.stream_priorities_supported = 1;
  p.shared_mem_per_multiprocessor = card.lds_bytes;
  p.shared_mem_per_block_optin = card.lds_bytes;
  p.regs_per_multiprocessor = p.regs_per_block;
  p.single_to_double_precision_perf_ratio = 2;  // MI50 runs float64 at half rate
  p.max_blocks_per_multi_processor =
      static_cast<int>(card.max_waves_per_simd * card.simds_per_compute_unit);
  std::snprintf(p.uuid.bytes, sizeof(p.uuid.bytes), "flashattn-sim-0");
}

}  // namespace fasim::hip
