// Weights of any magnitude as fp16 operands of a product that sums over them.
//
// dS has no bound: it grows with dO and V, and under a small loss it is far below fp16. So each row
// of weights is multiplied by a power of two that brings the largest seen so far near 2^kTop, and
// its sums are divided by it at the end. It only ever falls: when a weight exceeds 2^kLimit the row
// is brought back to kTop and the sums follow, which is rare after the first blocks. What falls
// below fp16's range is then below 2^-35 of the row's largest weight.
#pragma once

#include "gcn/dpp.h"
#include "gcn/math.h"
#include "gcn/wave.h"

namespace flashattn {

// The 16 lanes of a group share their rows.
template <int rows>
class WeightScale {
  static constexpr uint32_t kTop = 11;
  static constexpr float kLimit = 0x1p15f;
  static constexpr uint32_t kLargest = 127 + 100;  // exponent field: of rows that are zero so far

 public:
  __device__ WeightScale() {
#pragma unroll
    for (int i = 0; i < rows; ++i) factor_[i] = __builtin_bit_cast(float, kLargest << 23);
  }

  // Before the weights of a block join `sums`, which are in parts of their columns.
  template <int columns, int parts, int width>
  __device__ void follow(const float (&weight)[rows][columns], float (&sums)[parts][rows][width]) {
    float most[rows], excess = 0.0f;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      most[i] = largest(weight[i]);
      excess = gcn::max2(excess, most[i] * factor_[i]);
    }
    if (!gcn::any_lane(excess > kLimit)) return;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const float before = factor_[i];
      factor_[i] = __builtin_fminf(before, factor_for(gcn::max_row16(most[i])));
      const float change = factor_[i] * inverse(before);
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int c = 0; c < width; ++c) gcn::scale_by(sums[part][i][c], change);
    }
  }

  // Pairs of the scaled weights in fp16.
  template <int columns>
  __device__ void pack(const float (&weight)[rows][columns],
                       uint32_t (&p)[rows][columns / 2]) const {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; j += 2)
        p[i][j / 2] =
            gcn::as_bits(gcn::to_half2(weight[i][j] * factor_[i], weight[i][j + 1] * factor_[i]));
  }

  // What the sums of a row are to be multiplied by in the end.
  __device__ float inverse_of(int row) const { return inverse(factor_[row]); }

 private:
  template <int columns>
  __device__ static float largest(const float (&weight)[columns]) {
    float x = gcn::max2_abs(weight[0], weight[1]);
#pragma unroll
    for (int j = 2; j < columns; j += 2) x = gcn::max3_abs(x, weight[j], weight[j + 1]);
    return x;
  }

  __device__ static float factor_for(float most) {
    const uint32_t exponent = __builtin_bit_cast(uint32_t, most) >> 23;
    const uint32_t field = 254 + kTop - exponent;
    return __builtin_bit_cast(float, (field < kLargest ? field : kLargest) << 23);
  }

  // Of a power of two between 2^-126 and 2^126.
  __device__ static float inverse(float factor) {
    return __builtin_bit_cast(float, (254u << 23) - __builtin_bit_cast(uint32_t, factor));
  }

  float factor_[rows];
};

}  // namespace flashattn
