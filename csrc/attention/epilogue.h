// Normalise O and write it and the LSE. Rows of the tile past seqlen_q are not written.
#pragma once

#include "attention/pv.h"
#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "gcn/global_io.h"

namespace flashattn {

struct OutputRows {
  gcn::half* base;
  int64_t row_stride;
  float* lse;
  int count;
  bool aligned;
};

// A lane holds at most 4 adjacent columns, so it stores 8 bytes; the 16 lanes of a group fill
// whole 64-byte lines together.
template <Tile T>
__device__ inline void store_output(const OutputRows& out, int first_row, int lane_in_group,
                                    const SoftmaxState (&state)[Shape<T>::kRows],
                                    const float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
  using L = Shape<T>;
#pragma unroll
  for (int i = 0; i < L::kRows; ++i) {
    const auto [inverse_sum, lse] = state[i].finish();
    const int row = first_row + i * kGroups;
    if (row >= out.count) continue;
#pragma unroll
    for (int stripe = 0; stripe < L::kCols / L::kColVec; ++stripe) {
      gcn::half x[L::kColVec];
#pragma unroll
      for (int c = 0; c < L::kColVec; ++c)
        x[c] = static_cast<gcn::half>(o[i][stripe * L::kColVec + c] * inverse_sum);
      gcn::store(out.base + row * out.row_stride + column<T>(lane_in_group, stripe), x,
                 out.aligned);
    }
    if (lane_in_group == 0) out.lse[row] = lse;
  }
}

}  // namespace flashattn
