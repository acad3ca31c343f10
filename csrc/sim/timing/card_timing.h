// The clocks, sizes and rates of a card: every number that the timing model uses.
// Values: configs/gfx906.toml, [[card]] and [timing].
#pragma once

#include <cstdint>
#include <string>

namespace fasim {

struct CardTiming {
  std::string name;
  uint32_t compute_units = 0;
  double clock_mhz = 0;

  // VALU clocks of one wave64 instruction on its SIMD.
  uint32_t valu_full = 0;
  uint32_t valu_half = 0;     // fp64 add, mul, fma; 64-bit shifts
  uint32_t valu_quarter = 0;  // transcendental, fp32 division helpers
  uint32_t valu_mul32 = 0;    // 32-bit integer multiply; fitted: clpeak, int32 mad on a Pro VII
  uint32_t valu_convert = 0;
  uint32_t valu_f64_quarter = 0;  // fp64 rcp, rsq, sqrt and division helpers
  uint32_t valu_to_salu = 0;      // an SGPR written by the VALU and read by SALU or a branch

  // LDS.
  uint32_t lds_latency = 0;  // first data after the port takes the instruction
  uint32_t lds_queue = 0;    // instructions that wait at a port
  // Data and address in, data out: as a write and a read. Fitted: 965 G exchanges/s on an MI50.
  uint32_t bpermute_port = 0;

  // Scalar memory.
  uint32_t smem_hit = 0;
  uint32_t scalar_cache_bytes = 0;

  // Vector memory.
  uint32_t l1_bytes = 0, l1_ways = 0, line_bytes = 0;
  uint32_t l1_latency = 0;
  uint32_t vmem_queue = 0;  // instructions that wait for the address units
  uint32_t l2_bytes = 0, l2_ways = 0, l2_channels = 0;
  uint32_t l2_channel_interleave = 0;
  // How many groups of higher address bits are XORed into the channel number.
  uint32_t l2_channel_folds = 0;
  uint32_t l2_bytes_per_clk = 0;  // of one channel
  // Clocks of a channel for a store of less than a sector. Fitted: 14 GB/s of dwords at a stride of
  // 16 KiB on an MI50; the same constant explains the 54 GB/s of dwordx4.
  uint32_t l2_partial_write = 0;
  uint32_t l2_latency = 0;
  double hbm_gbps = 0;
  double hbm_read_efficiency = 0;   // fitted: 867-873 GB/s read on an MI50
  double hbm_write_efficiency = 0;  // fitted: 713-718 GB/s copied on a Vega II
  uint32_t hbm_latency = 0;

  // Control.
  uint32_t branch_taken = 0;
  uint32_t barrier_release = 0;
  uint32_t workgroup_launch = 0;
  double launch_us = 0;  // of a kernel, beside its own time. Fitted: 4 us for an empty one, Vega II
};

}  // namespace fasim
