// The one argument of the kernels that merge attention over two sets of keys.
#pragma once

#include "core/fwd_args.h"

namespace flashattn {

// Log-sum-exps of all rows; strides in elements.
struct LseView {
  float* data;  // natural logarithm
  int64_t batch_stride;
  int64_t row_stride;
  int64_t head_stride;
};

struct MergeArgs {
  TensorView a, b, o;  // [batch, seqlen, heads, columns]
  LseView lse_a, lse_b, lse;
  int32_t batch;
  int32_t seqlen;
  int32_t heads;
  int32_t columns;
  int32_t chunks;  // of a row: 16 bytes each, the last one maybe fewer
  int32_t whole;   // every chunk has all its bytes and begins at a multiple of 4
};

inline constexpr int kMergeThreads = 256;
inline constexpr int kMergeChunkBytes = 16;

}  // namespace flashattn
