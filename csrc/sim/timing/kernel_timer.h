// Times workgroups of one launch on a whole card: dispatch to CUs, which share L2 and HBM.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/launch.h"
#include "timing/card_timing.h"
#include "timing/compute_unit.h"
#include "timing/memory_system.h"

namespace fasim {

// What was moved until some clock.
struct Traffic {
  uint64_t instructions = 0;  // wave instructions until then
  uint64_t groups = 0;        // begun until then
  uint64_t l1_requests = 0;   // lines
  MemoryCounters memory;
};

struct KernelTime {
  uint64_t clocks = 0;        // of the timed groups, from the first wave to the last
  uint64_t drain_begin = 0;   // clock at which the last group started
  uint64_t instructions = 0;  // wave instructions of the timed groups
  uint64_t instructions_before_drain = 0;
  double rate_first_half = 0, rate_second_half = 0;  // instructions a clock before drain_begin
  uint64_t groups = 0;
  bool complete = true;                      // whether every group ran to its end
  std::vector<uint64_t> group_instructions;  // of each group, in their order; 0: did not end
  CuCounters cus;                            // of all CUs
  MemoryCounters memory;
  Traffic half_way;  // when half of TimerLimits::instructions had run; zeros if they never had
  // By index of Program::insts: SIMD clocks, and clocks that bank conflicts cost.
  std::vector<uint64_t> clocks_by_instruction, lds_conflicts;
  std::vector<TimelineEntry> timeline;  // of CU 0
};

struct TimerLimits {
  size_t timeline_entries = 0;
  uint64_t instructions = ~0ull;  // wave instructions after which the groups are left as they are
};

// Runs the groups (linear indices, in dispatch order) to their end, with all their effects.
// At most `groups_per_cu` at a time on a CU. Throws SimFault.
KernelTime time_groups(const CardTiming& card, const Launch& launch, uint32_t groups_per_cu,
                       const std::vector<uint64_t>& groups, const TimerLimits& limits = {});

}  // namespace fasim
