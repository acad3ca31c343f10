// The online softmax of one query row in base 2 (Milakov & Gimelshein 2018; FlashAttention-2).
//
// The 16 lanes of a group share the row: `max` is the same in all of them, `sum` is each lane's
// share until finish().
#pragma once

#include "gcn/dpp.h"
#include "gcn/math.h"

namespace flashattn {

struct SoftmaxState {
  float max = -__builtin_inff();  // of score * softmax_scale * log2(e)
  float sum = 0.0f;               // of 2^(score - max)

  // Takes this lane's new scores, turns them into probabilities relative to the new maximum, and
  // returns the factor for what was accumulated before.
  //
  // The maximum is taken over the very numbers that are subtracted from: with an fma here in
  // place of a rounded product and a difference, a row of equal scores near 1e6 would get
  // probabilities off by 2^(1/32).
  template <int n>
  __device__ float update(float (&score)[n]) {
    float block_max = score[0];
#pragma unroll
    for (int j = 1; j < n; ++j) block_max = __builtin_fmaxf(block_max, score[j]);
    const float new_max = __builtin_fmaxf(max, gcn::max_row16(block_max));
    // While a row has seen no key its maximum is -inf, and -inf - -inf is NaN. Any finite number
    // serves as well: every 2^(-inf - x) is 0.
    const float base = new_max == -__builtin_inff() ? 0.0f : new_max;
    const float rescale = gcn::exp2(max - base);
    float block_sum = 0.0f;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      score[j] = gcn::exp2(score[j] - base);
      block_sum += score[j];
    }
    max = new_max;
    sum = sum * rescale + block_sum;
    return rescale;
  }

  struct Result {
    float inverse_sum;  // 0 for a row without keys, so that O becomes 0 and not NaN
    float lse;          // natural log of the sum of exp(score * softmax_scale)
  };

  __device__ Result finish() const {
    constexpr float ln2 = 0.693147180559945309417f;
    const float row_sum = gcn::sum_row16(sum);
    if (row_sum == 0.0f) return {.inverse_sum = 0.0f, .lse = -__builtin_inff()};
    return {.inverse_sum = gcn::reciprocal(row_sum), .lse = (max + gcn::log2(row_sum)) * ln2};
  }
};

}  // namespace flashattn
