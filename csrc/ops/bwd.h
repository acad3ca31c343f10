// flashattn_rocm::bwd, the gradients of attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "ops/checks.h"

namespace flashattn {

// dq, dk, dv: shapes and dtypes of q, k and v; then those of attn_bias and sinks, empty unless
// asked for.
using BwdResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// For cpu tensors (the simulator) and cuda tensors (the card).
BwdResult bwd(FLASHATTN_BWD_PARAMETERS);

// Shapes, dtypes and strides only.
BwdResult bwd_meta(FLASHATTN_BWD_PARAMETERS);

// The same into tensors that are there, of any strides: parts of a packed one, say. Rows of no
// sequence are left as they are.
void bwd_into(FLASHATTN_BWD_INTO_PARAMETERS);
void bwd_into_meta(FLASHATTN_BWD_INTO_PARAMETERS);

}  // namespace flashattn
