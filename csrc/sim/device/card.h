// The facts of the simulated card, and nothing else: every number that the HIP facade reports or
// that a launch is checked against is read from here.
#pragma once

#include <cstdint>

namespace fasim {

struct Card {
  const char* name;
  const char* arch;    // processor name that a code object must be built for
  const char* target;  // processor with the feature settings that this card runs with
  uint32_t compute_units;
  uint32_t simds_per_compute_unit;
  uint32_t wave_size;
  uint32_t max_waves_per_simd;
  uint32_t vgprs_per_simd;     // 32-bit registers a lane, shared by the waves of a SIMD
  uint32_t vgpr_granule;       // a wave's VGPRs are allocated in multiples of this
  uint32_t max_groups_per_cu;  // workgroups of more than one wave (each holds a barrier)
  uint32_t lds_bytes;          // one CU's LDS; one workgroup may take all of it
  uint32_t lds_granule;        // LDS is allocated in multiples of this
  uint32_t max_group_threads;
  uint32_t max_grid_x, max_grid_y, max_grid_z;  // workgroups
  uint32_t clock_khz;
  uint32_t memory_clock_khz;
  uint32_t memory_bus_bits;
  uint32_t wall_clock_khz;  // s_memrealtime
  uint32_t l2_bytes;
  uint64_t memory_bytes;
};

// What every gfx906 has; the rest of a Card comes from configs/gfx906.toml (device/card_facts.h).
//   AMD "Vega 7nm" shader ISA: 4 SIMDs a CU, wave 64, 256 VGPRs a lane, 10 waves a SIMD, 64 KiB of
//     LDS, workgroup <= 1024.
//   LLVM AMDGPU backend for gfx906: VGPR granule 4, LDS granule 512 bytes, 16 barrier groups a CU.
//   Grid limits are those HIP reports: 2^31 - 1 in x, 2^16 - 1 in y and z.
inline constexpr Card kGfx906 = {
    .name = nullptr,
    .arch = "gfx906",
    .target = "gfx906:sramecc+:xnack-",
    .compute_units = 0,
    .simds_per_compute_unit = 4,
    .wave_size = 64,
    .max_waves_per_simd = 10,
    .vgprs_per_simd = 256,
    .vgpr_granule = 4,
    .max_groups_per_cu = 16,
    .lds_bytes = 64 * 1024,
    .lds_granule = 512,
    .max_group_threads = 1024,
    .max_grid_x = 2147483647,
    .max_grid_y = 65535,
    .max_grid_z = 65535,
    .clock_khz = 0,
    .memory_clock_khz = 0,
    .memory_bus_bits = 4096,
    .wall_clock_khz = 25000,
    .l2_bytes = 0,
    .memory_bytes = 0,
};

}  // namespace fasim
