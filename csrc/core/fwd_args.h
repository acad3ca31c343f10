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

// Varlen: sequence b of q is rows [cu_seqlens_q[b], cu_seqlens_q[b + 1]) of one long tensor without
// batch, likewise k and v. Null pointers: every sequence has all rows of its batch item.
struct Sequences {
  const int32_t* cu_seqlens_q;
  const int32_t* cu_seqlens_k;
  const int32_t* seqused_k;  // or null: only so many keys of each sequence count
};

enum class BiasType : int32_t { none, f16, bf16, f32, mask };

// What may change a score, in this order (Scores::modified): softcap, ALiBi, bias or mask.
struct ScoreChanges {
  const float* alibi_slopes;  // or null: [heads_q], or [batch, heads_q]
  const void* bias;           // [batch, heads_q, seqlen_q, seqlen_k], any strides, also 0
  int64_t alibi_batch_stride;
  int64_t bias_batch_stride;
  int64_t bias_head_stride;
  int64_t bias_row_stride;
  int64_t bias_key_stride;
  BiasType bias_type;  // mask: bytes, a key is visible where they are not 0
  float softcap;       // 0: none
};

// Probabilities are dropped after the softmax has been normalised (attention/dropout.h).
struct Dropout {
  const int64_t* rng_state;  // seed and offset
  uint32_t drop;             // of 2^16 probabilities; 0: none
  float scale;               // of those that are kept: 1 / (1 - dropout_p)
  // How heads of batch items are counted: a launch may be of some of them alone.
  uint32_t first_head;
  uint32_t batch_stride;
};

// Sums of two lengths and a window side stay in int32.
inline constexpr int32_t kMaxSeqlen = 1 << 28;

struct FwdArgs {
  TensorView q;        // [batch, seqlen_q, heads_q, head_dim]
  TensorView k;        // [batch, seqlen_k, heads_kv, head_dim]
  TensorView v;        // [batch, seqlen_k, heads_kv, head_dim_v]
  TensorView o;        // [batch, seqlen_q, heads_q, head_dim_v]
  float* lse;          // [batch, heads_q, seqlen_q], or [heads_q, all rows] if varlen; natural log
  const float* sinks;  // or null: [heads_q], a logit that joins the denominator of each row
  Sequences sequences;
  ScoreChanges scores;
  Dropout dropout;
  int64_t lse_batch_stride;
  int64_t lse_head_stride;
  int32_t batch;
  int32_t seqlen_q;  // varlen: the longest that the grid is for
  int32_t seqlen_k;
  int32_t heads_q;
  int32_t heads_kv;
  int32_t head_dim;
  int32_t head_dim_v;
  // Query i sees keys [i + d - window_left, i + d + window_right], d = seqlen_k - seqlen_q (aligned
  // at the bottom right, as in flash-attn), or d = 0 if top_left. Causal is window_right = 0;
  // kMaxSeqlen means no bound.
  int32_t window_left;
  int32_t window_right;
  int32_t top_left;
  int32_t heads_together;  // key heads whose query blocks take turns in the grid; divides heads_kv
  float softmax_scale;
};

}  // namespace flashattn
