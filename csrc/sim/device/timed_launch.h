// A launch whose time is wanted: some workgroups run on the timing model, the others only run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/occupancy.h"
#include "exec/launch.h"
#include "timing/kernel_timer.h"

namespace fasim {

// What one instruction of the program cost, in all waves.
struct InstructionCost {
  uint64_t text_offset;  // bytes from the start of .text
  std::string instruction;
  uint64_t clocks;               // of SIMDs, waits that it began included
  uint64_t lds_conflict_clocks;  // of CUs
};

// Bytes that crossed each level; L1 and L2 count whole lines.
struct LevelBytes {
  uint64_t l1, l2, hbm_read, hbm_write;
};

// A profile of one launch.
struct LaunchProfile {
  std::string kernel;
  uint32_t grid[3], block[3];
  KernelResources resources;
  Occupancy occupancy;
  CardTiming card;
  KernelTime timed;                             // of the sampled workgroups
  std::vector<InstructionCost> by_instruction;  // of those, in the program's order
  uint64_t groups = 0;                          // of the whole launch
  uint64_t instructions = 0;                    // of the whole launch
  double clocks = 0;          // of the whole launch, extrapolated if groups were sampled
  double sampling_error = 0;  // relative; 0 when every group was timed
  LevelBytes bytes{};         // of the whole launch, extrapolated likewise
  double milliseconds() const { return clocks / (card.clock_mhz * 1e3); }
};

// Which workgroups to time: all while the card can be filled `kWholeFills` times at most, else one
// fill from the start of the grid and one from its middle.
std::vector<uint64_t> sample_groups(uint64_t groups, uint64_t card_capacity);

// Runs every workgroup once; with `sampled_only` as few as the time needs, and some of them in
// part. Throws SimFault.
LaunchProfile timed_launch(const CardTiming& card, const Launch& launch,
                           const KernelResources& resources, const Occupancy& occupancy,
                           bool sampled_only = false);

// The profile as one JSON object; the keys are described in docs/simulator.md.
std::string to_json(const LaunchProfile& profile);

}  // namespace fasim
