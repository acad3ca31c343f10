// Reductions over all lanes of a wave, and a lane's number for all.
#pragma once

#include "gcn/dpp.h"

namespace flashattn::gcn {

// `lane` is the same in all lanes.
__device__ inline float from_lane(float x, int lane) {
  return __builtin_bit_cast(float, __builtin_amdgcn_readlane(__builtin_bit_cast(int, x), lane));
}

template <class Op>
__device__ inline float reduce_wave(float x, Op op) {
  x = reduce_row16(x, op);
  return op(op(from_lane(x, 0), from_lane(x, 16)), op(from_lane(x, 32), from_lane(x, 48)));
}

}  // namespace flashattn::gcn
