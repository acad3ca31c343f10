// The online softmax of query rows in base 2 (Milakov & Gimelshein 2018; FlashAttention-2), with a
// lazy maximum.
//
// Probabilities are 2^(score * scale - shift). Every shift gives the same O and LSE; it only has to
// keep them in range. So it follows the row's maximum no closer than 2^kSlack: a row is rescaled
// when a score exceeds `limit` = (shift + kSlack) / scale, which is rare after the first blocks.
// The scale is positive here.
#pragma once

#include "attention/base2.h"
#include "core/tile.h"
#include "gcn/dpp.h"
#include "gcn/math.h"
#include "gcn/wave.h"

namespace flashattn {

inline constexpr float kSlack = 8.0f;  // of the 16 powers of two of fp16, in which P may be stored

struct SoftmaxResult {
  float inverse_sum;  // 0 for a row without keys, so that O becomes 0 and not NaN
  float lse;          // natural log of the sum of exp(score * softmax_scale)
};

// A row's denominator: `sum` of 2^(x - base).
struct RowTotal {
  float sum;
  float base;

  // `sink` is a logit in base 2 that joins the denominator, -inf for none.
  __device__ SoftmaxResult finish(float sink) const {
    float row_sum = sum, row_base = base, factor = 1.0f;
    if (sink > row_base) {
      factor = gcn::exp2(row_base - sink);
      row_sum *= factor;
      row_base = sink;
    }
    row_sum += gcn::exp2(sink - row_base);
    if (row_sum == 0.0f) return {.inverse_sum = 0.0f, .lse = -__builtin_inff()};
    return {.inverse_sum = gcn::reciprocal(row_sum) * factor,
            .lse = (row_base + gcn::log2(row_sum)) * kLn2};
  }
};

// The 16 lanes of a group share a row: `limit` is the same in all of them, `sum` is each lane's
// share until total().
struct SoftmaxRow {
  float limit = -__builtin_inff();  // a score, not yet scaled
  float sum = 0.0f;                 // of 2^(score * scale - shift)

  // Finite for a row that has seen no key: its scores are all -inf, and -inf - -inf is NaN.
  __device__ float shift(float scale) const {
    return gcn::max2(__builtin_fmaf(limit, scale, -kSlack), -gcn::kLargest);
  }

  __device__ RowTotal total(float scale) const { return {gcn::sum_row16(sum), shift(scale)}; }
};

// The scores of a lane's rows in one block become probabilities; O follows where a row's shift
// moves.
template <Tile T, int rows, int keys, int cols>
class BlockSoftmax {
 public:
  __device__ BlockSoftmax(float scale, SoftmaxRow (&row)[rows]) : scale_(scale), row_(row) {}

  __device__ void raise_limits(const float (&score)[rows][keys], float (&o)[rows][cols]) {
    float most[rows];
#pragma unroll
    for (int i = 0; i < rows; ++i) most[i] = largest(score[i]);
    if constexpr (T.rescale == Rescale::lazy) {
      if (!gcn::any_lane(excess(most) > 0.0f)) return;
    }
    const float slack = kSlack * gcn::reciprocal(scale_);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const float before = row_[i].shift(scale_);
      row_[i].limit = gcn::max2(row_[i].limit, gcn::max_row16(most[i]) + slack);
      const float factor = gcn::exp2(before - row_[i].shift(scale_));
      row_[i].sum *= factor;
#pragma unroll
      for (int c = 0; c < cols; ++c) gcn::scale_by(o[i][c], factor);
    }
  }

  // Each in fp32, or pairs in fp16.
  template <int words>
  __device__ void probabilities(const float (&score)[rows][keys], uint32_t (&p)[rows][words]) {
    constexpr bool kPairs = words < keys;
    static_assert(words == (kPairs ? keys / 2 : keys) && (!kPairs || keys % 2 == 0));
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const float shift = row_[i].shift(scale_);
#pragma unroll
      for (int j = 0; j < keys; j += keys / words) {
        const float a = gcn::exp2(__builtin_fmaf(score[i][j], scale_, -shift));
        row_[i].sum += a;
        if constexpr (kPairs) {
          const float b = gcn::exp2(__builtin_fmaf(score[i][j + 1], scale_, -shift));
          row_[i].sum += b;
          p[i][j / 2] = gcn::as_bits(gcn::to_half2(a, b));
        } else {
          p[i][j] = __builtin_bit_cast(uint32_t, a);
        }
      }
    }
  }

 private:
  __device__ static float largest(const float (&score)[keys]) {
    if constexpr (keys == 1) {
      return score[0];
    } else {
      float x = gcn::max2(score[0], score[1]);
#pragma unroll
      for (int j = 2; j < keys; j += 2) x = gcn::max3(x, score[j], score[j + 1]);
      return x;
    }
  }

  // Above zero if a row of this lane exceeds its limit.
  __device__ float excess(const float (&most)[rows]) const {
    float x = most[0] - row_[0].limit;
#pragma unroll
    for (int i = 1; i < rows; ++i) x = gcn::max2(x, most[i] - row_[i].limit);
    return x;
  }

  float scale_;
  SoftmaxRow (&row_)[rows];
};

}  // namespace flashattn
