// A gradient's rows to memory.
#pragma once

#include "attention/epilogue.h"
#include "attention/tile_io.h"

namespace flashattn {

// Rows first_row + 4 i, as far as there are so many, each times its factor.
template <Tile T, Element E>
__device__ inline void store_sums(const Rows& to, int first_row, int lane_in_group,
                                  const float (&sums)[Shape<T>::kRows][Shape<T>::kCols],
                                  const float (&factor)[Shape<T>::kRows]) {
  const OutputRows out = {.base = const_cast<gcn::half*>(to.base),
                          .row_stride = to.row_stride,
                          .lse = nullptr,
                          .count = to.count,
                          .columns = to.columns / halves_of(E),
                          .factor = 1.0f,
                          .sink = 0.0f};
#pragma unroll
  for (int i = 0; i < Shape<T>::kRows; ++i) {
    const int row = first_row + i * kGroups;
    if (row >= out.count) continue;
    static_for<Stripes<T>::kCount>([&](auto s) {
      constexpr Stripe stripe = Stripes<T>::at(s);
      store_stripe<T, E, stripe.width>(out, row, Stripes<T>::column(stripe, lane_in_group),
                                       &sums[i][stripe.first], factor[i]);
    });
  }
}

}  // namespace flashattn
