// What the backward needs of each query row beside its operands: the shift that makes its
// probabilities from its scores, and delta = sum of dout * out, which is the sum of P * dP.
#pragma once

#include "attention/score_changes.h"
#include "attention/tile_io.h"
#include "core/bwd_args.h"
#include "gcn/dpp.h"

namespace flashattn {

// Beside infinity a row's probabilities are 0: it saw no key.
__device__ inline float shift_of(float lse) {
  return lse == -__builtin_inff() ? __builtin_inff() : lse * kLog2e;
}

template <Element E>
__device__ inline float dot_chunk(gcn::half8 a, gcn::half8 b, float sum) {
  if constexpr (E == Element::f32) {
    const auto x = __builtin_bit_cast(gcn::float4, a), y = __builtin_bit_cast(gcn::float4, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum = __builtin_fmaf(x[i], y[i], sum);
  } else if constexpr (E == Element::bf16) {
    const auto x = __builtin_bit_cast(gcn::ushort8, a), y = __builtin_bit_cast(gcn::ushort8, b);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      sum = __builtin_fmaf(gcn::bf16_to_float(x[i]), gcn::bf16_to_float(y[i]), sum);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i += 2) sum = gcn::dot2({a[i], a[i + 1]}, {b[i], b[i + 1]}, sum);
  }
  return sum;
}

// Delta of rows first_row + tile_row + 4 i, the same in the 16 lanes of a group.
//
// Summed in the order of the product dP (qk.h), so that dP - delta of a row whose O is the V of one
// key is exactly 0: each lane has a chunk of the columns and adds it to what the lane before has, a
// lane a turn.
template <Tile T, Element E, int rows>
__device__ inline void row_deltas(const Rows& out, const Rows& dout, int first_row, int tile_row,
                                  int lane_in_group, float (&delta)[rows]) {
  constexpr int kColumns = T.head_dim_v * halves_of(E), kAtOnce = kGroupLanes * kChunk;
  constexpr int kTurns = kColumns < kAtOnce ? kColumns / kChunk : kGroupLanes;
  float sum[rows], before[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i) sum[i] = 0.0f;
#pragma unroll 1
  for (int first = 0; first < kColumns; first += kAtOnce) {
    const int col = first + lane_in_group * kChunk;  // what lies past the columns is read as 0
    const TileReader<T.access> o(out, first_row, T.block_m, tile_row, col);
    const TileReader<T.access> d(dout, first_row, T.block_m, tile_row, col);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const gcn::half8 of_o = o.read(i * kGroups), of_d = d.read(i * kGroups);
      before[i] = gcn::dpp::move<gcn::dpp::kRowRotate<1>>(sum[i]);  // the last lane's for the first
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn)
        sum[i] = dot_chunk<E>(of_o, of_d, gcn::dpp::from_lane_before(sum[i], before[i]));
    }
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
    delta[i] = gcn::sum_row16(lane_in_group == kTurns - 1 ? sum[i] : 0.0f);
}

}  // namespace flashattn
