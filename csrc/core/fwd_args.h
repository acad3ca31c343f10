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

// Bits of FwdArgs::aligned16: base and all strides of that tensor are multiples of 16 bytes, so
// rows may be moved by 16-byte accesses.
enum Aligned16 : uint32_t {
  kAlignedQ = 1u << 0,
  kAlignedK = 1u << 1,
  kAlignedV = 1u << 2,
  kAlignedO = 1u << 3,
};

struct FwdArgs {
  TensorView q;  // [batch, seqlen_q, heads_q, head_dim]
  TensorView k;  // [batch, seqlen_k, heads_kv, head_dim]
  TensorView v;  // [batch, seqlen_k, heads_kv, head_dim]
  TensorView o;  // [batch, seqlen_q, heads_q, head_dim]
  float* lse;    // [batch, heads_q, seqlen_q], contiguous, natural log
  int32_t batch;
  int32_t seqlen_q;
  int32_t seqlen_k;
  int32_t heads_q;
  int32_t heads_kv;
  float softmax_scale;
  uint32_t aligned16;
};

}  // namespace flashattn
