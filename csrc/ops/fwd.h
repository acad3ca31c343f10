// flashattn_rocm::fwd, the attention forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace flashattn {

// out (batch, seqlen_q, heads_q, head_dim), dtype and layout of q;
// softmax_lse (batch, heads_q, seqlen_q), fp32, natural log.
using FwdResult = std::tuple<at::Tensor, at::Tensor>;

// For cpu tensors (the simulator) and cuda tensors (the card).
FwdResult fwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
              std::optional<double> softmax_scale, bool causal);

// Shapes, dtypes and strides only.
FwdResult fwd_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   std::optional<double> softmax_scale, bool causal);

// Before either: refuses what would need a backward.
FwdResult fwd_autograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       std::optional<double> softmax_scale, bool causal);

}  // namespace flashattn
