// What the timing model knows of an instruction before it runs. Made once for each program.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/program.h"
#include "timing/card_timing.h"
#include "timing/lds_banks.h"

namespace fasim {

// The issue classes of GCN: in one visit a SIMD sends at most one instruction of each, from
// different waves. Internal ones are handled in the wave's buffer.
enum class Issue : uint8_t { valu, scalar, vmem, lds, branch, internal };
inline constexpr size_t kIssueClasses = 6;

struct InstTiming {
  enum class Special : uint8_t { none, waitcnt, barrier, end, nop, sleep };

  Issue issue = Issue::internal;
  Special special = Special::none;
  uint8_t clocks = 4;          // VALU: of the SIMD; SALU: of the wave
  bool writes_scalar = false;  // VALU result that SALU and branches wait for
  bool is_smem = false;
  // LDS and vector memory.
  bool is_store = false, is_atomic = false, is_exchange = false, two_accesses = false;
  bool is_buffer = false, bypass_l1 = false;
  uint8_t bytes = 0;  // of a lane, of one access
  uint16_t unit = 1;  // LDS: what an offset of a two-access instruction counts
};

std::vector<InstTiming> time_instructions(const Program& program, const CardTiming& card);

}  // namespace fasim
