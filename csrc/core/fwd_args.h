// The one argument of every forward kernel, as the host fills it and the card reads it.
#pragma once

#include <cstdint>

namespace flashattn {

// Strides in elements and 64-bit: a KV cache passes 2^31 elements. The last dimension is
// contiguous.
struct TensorView {
  void* data;
  int64_t batch_stride;
  int64_t row_stride;
  int64_t head_stride;
};

// Sums of two lengths and a window side stay in int32.
inline constexpr int32_t kMaxSeqlen = 1 << 28;

struct FwdArgs {
  TensorView q;  // [batch, seqlen_q, heads_q, head_dim]
  TensorView k;  // [batch, seqlen_k, heads_kv, head_dim]
  TensorView v;  // [batch, seqlen_k, heads_kv, head_dim_v]
  TensorView o;  // [batch, seqlen_q, heads_q, head_dim_v]
  float* lse;    // [batch, heads_q, seqlen_q], contiguous, natural log
  int32_t batch;
  int32_t seqlen_q;
  int32_t seqlen_k;
  int32_t heads_q;
  int32_t heads_kv;
  int32_t head_dim;
  int32_t head_dim_v;
  // Query i sees keys [i + d - window_left, i + d + window_right], d = seqlen_k - seqlen_q
  // (aligned at the bottom right, as in flash-attn). Causal is window_right = 0; kMaxSeqlen means
  // no bound.
  int32_t window_left;
  int32_t window_right;
  float softmax_scale;
};

}  // namespace flashattn
