// flashattn_rocm::attn_probs, the probabilities that a forward weighs values with.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/checks.h"

namespace flashattn {

#define FLASHATTN_ATTN_PROBS_PARAMETERS                                                          \
  const at::Tensor &q, const at::Tensor &k, const at::Tensor &softmax_lse,                       \
      std::optional<double> softmax_scale, bool causal, c10::SymInt window_left,                 \
      c10::SymInt window_right, bool top_left, double softcap,                                   \
      const flashattn::OptionalTensor &alibi_slopes, const flashattn::OptionalTensor &attn_bias, \
      const flashattn::OptionalTensor &cu_seqlens_q,                                             \
      const flashattn::OptionalTensor &cu_seqlens_k, const flashattn::OptionalTensor &seqused_k, \
      c10::SymInt max_seqlen_q, c10::SymInt max_seqlen_k, double dropout_p,                      \
      const flashattn::OptionalTensor &rng_state
#define FLASHATTN_ATTN_PROBS_ARGUMENTS                                                            \
  q, k, softmax_lse, softmax_scale, causal, window_left, window_right, top_left, softcap,         \
      alibi_slopes, attn_bias, cu_seqlens_q, cu_seqlens_k, seqused_k, max_seqlen_q, max_seqlen_k, \
      dropout_p, rng_state

// exp(score - softmax_lse): (batch, heads_q, seqlen_q, seqlen_k), of packed sequences the longest
// ones, dtype of q, contiguous. 0 for a key that is not seen or does not exist; negative where
// dropout drops. Not divided by 1 - dropout_p. The arguments are fwd's, softmax_lse its result.
at::Tensor attn_probs(FLASHATTN_ATTN_PROBS_PARAMETERS);

// Shape, dtype and strides only.
at::Tensor attn_probs_meta(FLASHATTN_ATTN_PROBS_PARAMETERS);

// The result has no gradient; what requires one is taken as it is.
at::Tensor attn_probs_autograd(FLASHATTN_ATTN_PROBS_PARAMETERS);

}  // namespace flashattn
