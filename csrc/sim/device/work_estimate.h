// How many instructions each workgroup of a launch executes, from running some of them.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/launch.h"

namespace fasim {

struct WorkEstimate {
  std::vector<uint64_t> instructions;  // wave instructions, of each group
  double error = 0;  // relative, of their sum: half of what two sets of probes differ by
};

// Runs all groups of a small launch, and of a large one a fixed number, spread over the whole grid,
// which stand for their neighbours. Throws SimFault.
WorkEstimate estimate_work(const Launch& launch, uint64_t groups);

}  // namespace fasim
