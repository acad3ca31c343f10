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

// AMD Instinct MI50, 16 GiB. Sources:
//   AMD product page and ROCm "Accelerator and GPU hardware specifications": 60 CUs, 1725 MHz peak,
//     16 GiB HBM2 on a 4096-bit bus at 2 Gb/s a pin (1024 GB/s), LDS 64 KiB, L2 4 MiB, wave 64.
//   AMD "Vega 7nm" shader ISA: 4 SIMDs a CU, 256 VGPRs a lane, 10 waves a SIMD, workgroup <= 1024.
//   LLVM AMDGPU backend for gfx906: VGPR granule 4, LDS granule 512 bytes, 16 barrier groups a CU.
//   The amdkfd cache table says 8 MiB L2; the ISA document and ROCm's table (4 MiB) are followed.
//   Grid limits are those HIP reports: 2^31 - 1 in x, 2^16 - 1 in y and z.
inline constexpr Card kMi50 = {
    .name = "AMD Instinct MI50 (simulated)",
    .arch = "gfx906",
    .target = "gfx906:sramecc+:xnack-",
    .compute_units = 60,
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
    .clock_khz = 1725000,
    .memory_clock_khz = 1000000,
    .memory_bus_bits = 4096,
    .wall_clock_khz = 25000,
    .l2_bytes = 4 * 1024 * 1024,
    .memory_bytes = uint64_t{16} << 30,
};

}  // namespace fasim
