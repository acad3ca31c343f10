// flashattn_rocm::decode, attention of a few queries over a KV cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "ops/checks.h"

namespace flashattn {

// torch registers plain functions, so the list has to be written out once.
#define FLASHATTN_DECODE_PARAMETERS                                                                \
  const at::Tensor &q, const at::Tensor &k_cache, const at::Tensor &v_cache,                       \
      std::optional<double> softmax_scale, [[maybe_unused]] bool causal,                           \
      [[maybe_unused]] c10::SymInt window_left, [[maybe_unused]] c10::SymInt window_right,         \
      double softcap, const flashattn::OptionalTensor &alibi_slopes,                               \
      const flashattn::OptionalTensor &sinks, const flashattn::OptionalTensor &cache_seqlens,      \
      c10::SymInt seqlen_new, const flashattn::OptionalTensor &cache_batch_idx,                    \
      const flashattn::OptionalTensor &cache_leftpad,                                              \
      const flashattn::OptionalTensor &block_table, const flashattn::OptionalTensor &cu_seqlens_q, \
      c10::SymInt max_seqlen_q, int64_t num_splits, const flashattn::OptionalTensor &k_scale,      \
      const flashattn::OptionalTensor &v_scale
#define FLASHATTN_DECODE_ARGUMENTS                                                                 \
  q, k_cache, v_cache, softmax_scale, causal, window_left, window_right, softcap, alibi_slopes,    \
      sinks, cache_seqlens, seqlen_new, cache_batch_idx, cache_leftpad, block_table, cu_seqlens_q, \
      max_seqlen_q, num_splits, k_scale, v_scale

// out (batch, seqlen_q, heads_q, head_dim_v), or (rows, heads_q, head_dim_v) with cu_seqlens_q;
// softmax_lse (batch, heads_q, seqlen_q), or (heads_q, rows), fp32, natural log. Rows of out past
// the last sequence are 0.
using DecodeResult = std::tuple<at::Tensor, at::Tensor>;

DecodeResult decode(FLASHATTN_DECODE_PARAMETERS);
DecodeResult decode_meta(FLASHATTN_DECODE_PARAMETERS);

// There is no backward: what requires grad is refused.
DecodeResult decode_autograd(FLASHATTN_DECODE_PARAMETERS);

}  // namespace flashattn
