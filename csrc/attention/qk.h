// S = Q K^T for the rows and keys of one lane: an outer product of kRows x kKeys over LDS.
#pragma once

#include "attention/lds_storage.h"
#include "gcn/math.h"

namespace flashattn {

template <Tile T>
__device__ inline void score_block(const LdsStorage<T>& lds, int first_row, int lane_in_group,
                                   float (&s)[Shape<T>::kRows][Shape<T>::kKeys]) {
  using L = Shape<T>;
#pragma unroll
  for (int i = 0; i < L::kRows; ++i)
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j) s[i][j] = 0.0f;

#pragma unroll 2
  for (int col = 0; col < T.head_dim; col += 8) {
    gcn::half8 q[L::kRows], k[L::kKeys];
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) q[i] = lds.q8(first_row + i * kGroups, col);
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j) k[j] = lds.k8(lane_in_group + j * kGroupLanes, col);
#pragma unroll
    for (int e = 0; e < 8; e += 2)
#pragma unroll
      for (int i = 0; i < L::kRows; ++i)
#pragma unroll
        for (int j = 0; j < L::kKeys; ++j)
          s[i][j] = gcn::dot2({q[i][e], q[i][e + 1]}, {k[j][e], k[j][e + 1]}, s[i][j]);
  }
}

}  // namespace flashattn
