// Which kernels serve a backward.
#pragma once

#include "core/kernel_table.h"
#include "ops/dispatch.h"

namespace flashattn {

// Of the rows that can serve the problem one with the least padding, the first in the
// configuration; null if there is none.
const BwdKernel* choose_bwd_kernel(const FwdProblem& problem, Gradient gradient);

}  // namespace flashattn
