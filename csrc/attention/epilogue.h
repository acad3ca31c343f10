// Normalise O and write it and the LSE. Rows of the tile past seqlen_q are not written, nor are
// columns past head_dim_v.
#pragma once

#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "gcn/global_io.h"

namespace flashattn {

struct OutputRows {
  gcn::half* base;
  int64_t row_stride;
  float* lse;
  int count;
  int columns;
};

// A lane holds at most 4 adjacent columns, so it stores 8 bytes; the 16 lanes of a group fill
// whole 64-byte lines together.
template <Tile T>
__device__ inline void store_stripe(const OutputRows& out, int row, int column, int width,
                                    const float* o, float factor) {
  const int left = out.columns - column;
  gcn::half* const to = out.base + row * out.row_stride + column;
  gcn::half x[4];
#pragma unroll
  for (int c = 0; c < width; ++c) x[c] = static_cast<gcn::half>(o[c] * factor);
  if (T.access == Access::elements || width == 1) {
    gcn::store_elements(to, x, left < width ? left : width);
  } else if (left > 0 && width == 4) {
    gcn::store(to, x);
  } else if (left > 0) {
    gcn::store<2>(to, {x[0], x[1]});
  }
}

template <Tile T>
__device__ inline void store_output(const OutputRows& out, int first_row, int lane_in_group,
                                    float scale, const SoftmaxRow (&state)[Shape<T>::kRows],
                                    const float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape<T>::kRows; ++i) {
    const auto [inverse_sum, lse] = state[i].finish(scale);
    const int row = first_row + i * kGroups;
    if (row >= out.count) continue;
#pragma unroll
    for (int s = 0; s < Stripes<T>::kCount; ++s) {
      const Stripe stripe = Stripes<T>::at(s);
      store_stripe<T>(out, row, Stripes<T>::column(stripe, lane_in_group), stripe.width,
                      &o[i][stripe.first], inverse_sum);
    }
    if (lane_in_group == 0) out.lse[row] = lse;
  }
}

}  // namespace flashattn
