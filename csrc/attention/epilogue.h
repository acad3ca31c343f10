// Normalise O and write it and the LSE. Rows of the tile past seqlen_q are not written, nor are
// columns past head_dim_v.
#pragma once

#include "attention/number.h"
#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "gcn/global_io.h"

namespace flashattn {

struct OutputRows {
  gcn::half* base;
  int64_t row_stride;  // in halves
  float* lse;
  int count;
  int columns;
  float factor;  // of O, which was scaled by its inverse
  float sink;    // in base 2, -inf for none
};

// A lane holds at most 4 adjacent columns, so it stores 8 bytes, or 16 of fp32; the 16 lanes of a
// group fill whole 64-byte lines together.
template <Tile T, Element E, int width>
__device__ inline void store_stripe(const OutputRows& out, int row, int column, const float* o,
                                    float factor) {
  const int left = out.columns - column;
  using Number = decltype(narrow<E>(0.0f));
  Number* const to = reinterpret_cast<Number*>(out.base + row * out.row_stride) + column;
  Number x[width];
#pragma unroll
  for (int c = 0; c < width; ++c) x[c] = narrow<E>(o[c] * factor);
  if constexpr (T.access == Access::elements || width == 1) {
    gcn::store_elements(to, x, left);
  } else if (left > 0) {
    gcn::store(to, x);
  }
}

// `total(i)` is the RowTotal of the lane's row i.
template <Tile T, Element E, class Total>
__device__ inline void store_output(const OutputRows& out, int first_row, int lane_in_group,
                                    Total total,
                                    const float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
#pragma unroll
  for (int i = 0; i < Shape<T>::kRows; ++i) {
    const auto [inverse_sum, lse] = total(i).finish(out.sink);
    const int row = first_row + i * kGroups;
    if (row >= out.count) continue;
    static_for<Stripes<T>::kCount>([&](auto s) {
      constexpr Stripe stripe = Stripes<T>::at(s);
      store_stripe<T, E, stripe.width>(out, row, Stripes<T>::column(stripe, lane_in_group),
                                       &o[i][stripe.first], inverse_sum * out.factor);
    });
    if (lane_in_group == 0) out.lse[row] = lse;
  }
}

}  // namespace flashattn
