// A KV cache as the ops get it: checks, and what kernels see of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include "core/decode_args.h"
#include "ops/checks.h"

namespace flashattn {

// Columns of a latent cache: what keys and values share, and the keys' rotary ones behind it.
inline constexpr int kLatent = 512, kRope = 64;

struct CacheInputs {
  const at::Tensor& k_cache;
  const at::Tensor& v_cache;
  OptionalTensor seqlens;  // keys before this call; none: the cache is full
  OptionalTensor batch_idx;
  OptionalTensor leftpad;
  OptionalTensor block_table;
  c10::SymInt seqlen_new;  // keys that come to them in this call
  OptionalTensor k_scale;  // of a cache of bytes, and of no other
  OptionalTensor v_scale;

  KvFormat format() const;
  bool rows_of_chunks() const;  // both caches allow Access::chunks
  bool paged() const { return block_table.has_value(); }
  // v_cache is k_cache[..., :512] of 576 columns, as multi-head latent attention has it.
  bool latent() const;
  c10::SymInt capacity() const;  // keys of a sequence at most

  // Shapes, dtypes and strides, for sequences of `batch` queries like `q`. Throws
  // TypeError or ValueError that names the argument, its value and what is allowed.
  void check(const at::Tensor& q, const c10::SymInt& batch) const;

  // The numbers in seqlens, batch_idx, leftpad and block_table: all within the cache. Kernels read
  // and write nothing outside it whatever they say, so for a card, where looking at them waits for
  // it, this is left to FLASHATTN_ROCM_CHECK_INDICES=1; 0 leaves it out for cpu tensors too.
  void check_values() const;

  KvCache view() const;
  NamedTensors contents() const;  // keys, values and scales
  NamedTensors indices() const;
};

}  // namespace flashattn
