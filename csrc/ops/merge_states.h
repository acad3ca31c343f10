// flashattn_rocm::merge_states: results of the same queries over two sets of keys become one.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/fwd.h"

namespace flashattn {

#define FLASHATTN_MERGE_PARAMETERS \
  const at::Tensor &out_a, const at::Tensor &lse_a, const at::Tensor &out_b, const at::Tensor &lse_b

// out and softmax_lse as fwd gives them, for the keys of both.
FwdResult merge_states(FLASHATTN_MERGE_PARAMETERS);

// Shapes, dtypes and strides only.
FwdResult merge_states_meta(FLASHATTN_MERGE_PARAMETERS);

// All four arguments have gradients.
FwdResult merge_states_autograd(FLASHATTN_MERGE_PARAMETERS);

}  // namespace flashattn
