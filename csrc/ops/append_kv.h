// flashattn_rocm::append_kv_: new keys and values go to a KV cache in place, keys turned by their
// positions, and so are the queries that come with them.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/checks.h"

namespace flashattn {

#define FLASHATTN_APPEND_PARAMETERS                                                               \
  const at::Tensor &k_cache, const at::Tensor &v_cache, const at::Tensor &k, const at::Tensor &v, \
      const at::Tensor &cache_seqlens, const flashattn::OptionalTensor &q,                        \
      const flashattn::OptionalTensor &rotary_cos, const flashattn::OptionalTensor &rotary_sin,   \
      [[maybe_unused]] bool rotary_interleaved, [[maybe_unused]] bool q_at_one_position,          \
      const flashattn::OptionalTensor &cache_batch_idx,                                           \
      const flashattn::OptionalTensor &block_table, const flashattn::OptionalTensor &k_scale,     \
      const flashattn::OptionalTensor &v_scale
#define FLASHATTN_APPEND_ARGUMENTS                                                      \
  k_cache, v_cache, k, v, cache_seqlens, q, rotary_cos, rotary_sin, rotary_interleaved, \
      q_at_one_position, cache_batch_idx, block_table, k_scale, v_scale

// q, turned, of q's shape and contiguous; an empty tensor without q.
at::Tensor append_kv(FLASHATTN_APPEND_PARAMETERS);
at::Tensor append_kv_meta(FLASHATTN_APPEND_PARAMETERS);

// There is no backward: what requires grad is refused.
at::Tensor append_kv_autograd(FLASHATTN_APPEND_PARAMETERS);

}  // namespace flashattn
