// O += P V for the rows and columns of one lane. P goes through LDS, inside the wave that owns its
// rows, because there each lane needs all keys of a row.
#pragma once

#include "attention/lds_storage.h"
#include "gcn/math.h"
#include "gcn/wave.h"

namespace flashattn {

template <Tile T>
__device__ inline void store_p(LdsStorage<T>& lds, int first_row, int lane_in_group,
                               const float (&p)[Shape<T>::kRows][Shape<T>::kKeys]) {
  using L = Shape<T>;
#pragma unroll
  for (int i = 0; i < L::kRows; ++i)
#pragma unroll
    for (int j = 0; j < L::kKeys; j += 2)
      lds.p[first_row + i * kGroups][lane_in_group + j / 2 * kGroupLanes] =
          gcn::as_bits(gcn::to_half2(p[i][j], p[i][j + 1]));
  gcn::wave_fence();
}

// Lane c of a group holds columns c * kColVec + {0, ..} of every stripe of 16 * kColVec columns.
template <Tile T>
__device__ constexpr int column(int lane_in_group, int stripe) {
  return (stripe * kGroupLanes + lane_in_group) * Shape<T>::kColVec;
}

template <Tile T>
__device__ inline void accumulate_pv(const LdsStorage<T>& lds, int first_row, int lane_in_group,
                                     float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
  using L = Shape<T>;
  using ColPairs = uint32_t __attribute__((ext_vector_type(L::kColVec)));
  constexpr int kStripes = L::kCols / L::kColVec;

#pragma unroll 1
  for (int pair = 0; pair < L::kPairs; pair += 4) {
    gcn::pairs4 p[L::kRows];
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) p[i] = lds.p4(first_row + i * kGroups, pair);
#pragma unroll
    for (int e = 0; e < 4; ++e)
#pragma unroll
      for (int stripe = 0; stripe < kStripes; ++stripe) {
        const auto v =
            lds.template read<ColPairs>(&lds.v[pair + e][column<T>(lane_in_group, stripe)]);
#pragma unroll
        for (int i = 0; i < L::kRows; ++i)
#pragma unroll
          for (int c = 0; c < L::kColVec; ++c) {
            float& acc = o[i][stripe * L::kColVec + c];
            acc = gcn::dot2(gcn::as_half2(p[i][e]), gcn::as_half2(v[c]), acc);
          }
      }
  }
  gcn::wave_fence();
}

}  // namespace flashattn
