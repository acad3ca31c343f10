// Which kernel serves a call: the tile whose estimated time is the least. The rows are generated
// from configs/, their clocks too unless others were measured on this machine (tuned_table.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel_table.h"
#include "ops/fwd_estimate.h"

namespace flashattn {

std::span<const FwdKernel> fwd_kernels();

// The largest head_dim and head_dim_v of a row for such elements.
int max_head_dim(Element element);

// Every row for these columns and this access, the quickest first; the order depends on nothing but
// the problem and the rows. Of rows that pad head_dim only those with the least padding. Throws
// std::out_of_range when there is none.
std::vector<FwdChoice> rank_fwd_kernels(const FwdProblem& problem, std::span<const FwdKernel> rows);

// The same of the rows of this build, with the clocks that are known for the arch.
std::vector<FwdChoice> rank_fwd_kernels(const FwdProblem& problem);

// The first of them, or the one that FLASHATTN_ROCM_FWD_TILE or set_fwd_tile() asks for if it is
// among them.
FwdChoice choose_fwd_kernel(const FwdProblem& problem);

// Overrides FLASHATTN_ROCM_FWD_TILE; nullopt ends that. Returns what it replaces. Throws
// std::invalid_argument for a name that no row has.
std::optional<std::string> set_fwd_tile(std::optional<std::string> name);

}  // namespace flashattn
