// Reductions and sums over all lanes of a wave, and a lane's number for all.
#pragma once

#include "gcn/dpp.h"
#include "gcn/wave.h"

namespace flashattn::gcn {

// `lane` is the same in all lanes.
template <class T>
__device__ inline T from_lane(T x, int lane) {
  return __builtin_bit_cast(T, __builtin_amdgcn_readlane(__builtin_bit_cast(int, x), lane));
}

template <class T, class Op>
__device__ inline T reduce_wave(T x, Op op) {
  x = reduce_row16(x, op);
  return op(op(from_lane(x, 0), from_lane(x, 16)), op(from_lane(x, 32), from_lane(x, 48)));
}

// Lane i gets the sum of lanes 0 to i.
__device__ inline int prefix_sum_wave(int x) {
  x += dpp::move<dpp::kRowShift<1>>(x);
  x += dpp::move<dpp::kRowShift<2>>(x);
  x += dpp::move<dpp::kRowShift<4>>(x);
  x += dpp::move<dpp::kRowShift<8>>(x);
  int before = 0;
#pragma unroll
  for (int row = 16; row < kWaveSize; row += 16)
    before += lane_id() >= row ? from_lane(x, row - 1) : 0;
  return x + before;
}

// The first lane for which x holds; kWaveSize: none.
__device__ inline int first_lane(bool x) {
  const uint64_t lanes = __builtin_amdgcn_ballot_w64(x);
  return lanes == 0 ? kWaveSize : __builtin_ctzll(lanes);
}

}  // namespace flashattn::gcn
