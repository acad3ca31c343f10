// flashattn_rocm::fwd, the attention forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "ops/checks.h"

namespace flashattn {

// out (batch, seqlen_q, heads_q, head_dim_v) or (rows, heads_q, head_dim_v), dtype of q;
// softmax_lse (batch, heads_q, seqlen_q) or (heads_q, rows), fp32, natural log.
using FwdResult = std::tuple<at::Tensor, at::Tensor>;

// For cpu tensors (the simulator) and cuda tensors (the card).
FwdResult fwd(FLASHATTN_FWD_PARAMETERS);

// Shapes, dtypes and strides only.
FwdResult fwd_meta(FLASHATTN_FWD_PARAMETERS);

}  // namespace flashattn
