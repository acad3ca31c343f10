// What a kernel is expected to take for a forward, from the clocks of its row and the grid's shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/fwd_args.h"
#include "core/kernel_table.h"
#include "ops/split_plan.h"

namespace flashattn {

struct FwdProblem {
  FwdArgs args;  // lengths, heads, window; no pointer is followed
  Element element;
  bool rows_of_chunks;  // every tensor allows Access::chunks
  bool changes_scores;  // needs Scores::modified
  std::string arch;     // without feature suffixes
  int compute_units;
};

// A row that could serve a problem, and what it is expected to take.
struct FwdChoice {
  FwdKernel kernel;
  int64_t workgroups;
  double mean_steps;  // of a workgroup
  double clocks;
  std::optional<SplitPlan> plan;  // of a kernel with FwdKernel::split
};

// Of a kernel without FwdKernel::split.
FwdChoice estimate_fwd(const FwdProblem& problem, const FwdKernel& kernel);

// Of one with it, cut the way that is expected to be the quickest; nothing where there is none.
std::optional<FwdChoice> estimate_fwd_split(const FwdProblem& problem, const FwdKernel& kernel);

}  // namespace flashattn
