// Which kernel serves a call. The rows are generated from configs/.
#pragma once

#include <span>
#include <vector>

#include "core/kernel_table.h"

namespace flashattn {

std::span<const FwdKernel> fwd_kernels();

// Ascending, each once.
const std::vector<int>& served_head_dims();

// The one row for a head_dim and a mask; throws std::out_of_range when there is none.
const FwdKernel& find_fwd_kernel(int head_dim, Mask mask);

}  // namespace flashattn
