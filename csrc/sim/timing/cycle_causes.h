// What a SIMD's clocks went to. Every clock of every SIMD has exactly one cause, so they add up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fasim {

enum class Cause : uint8_t {
  valu,          // the vector ALU is busy
  lds_pipe,      // LDS takes an instruction, or its port or banks are busy
  lds_latency,   // data on its way back from LDS
  vmem_issue,    // a vector memory instruction is taken, or address units are busy
  vmem_latency,  // data on its way back from L1, L2 or HBM
  smem_latency,
  salu,     // scalar instruction, or a scalar that waits for the vector ALU
  fetch,    // the instructions after a taken branch
  control,  // s_waitcnt, s_nop, branch and the like take their slot
  barrier,
  no_wave,  // no wave is resident
};
inline constexpr size_t kCauses = 11;
inline constexpr std::array<const char*, kCauses> kCauseNames = {
    "valu", "lds_pipe", "lds_latency", "vmem_issue", "vmem_latency", "smem_latency",
    "salu", "fetch",    "control",     "barrier",    "no_wave"};

using CauseClocks = std::array<uint64_t, kCauses>;

}  // namespace fasim
