// From the op's inputs to the kernels' argument; the backward's holds the same.
#pragma once

#include "core/fwd_args.h"
#include "core/tile.h"
#include "ops/checks.h"

namespace flashattn {

// A size that the checks have bounded.
int32_t as_int32(const c10::SymInt& size);

// One side of a window; a negative one is unbounded.
int32_t window_side(const c10::SymInt& side);

// out and lse: what the forward writes, or wrote. sinks: as float, or undefined. All but
// heads_together, which depends on the tile.
FwdArgs fwd_arguments(const FwdInputs& in, const FwdShape& shape, const at::Tensor& out,
                      const at::Tensor& lse, const at::Tensor& sinks);

// Whether a kernel needs Scores::modified, dropout included.
bool changes_scores(const FwdInputs& in);

}  // namespace flashattn
