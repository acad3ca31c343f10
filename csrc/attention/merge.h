// Normalised results over disjoint sets of keys, and their log-sum-exps, make one. All in base 2.
#pragma once

#include "gcn/math.h"

namespace flashattn {

inline constexpr float kLn2 = 0.693147180559945309417f;

// Two of them. -inf is the log-sum-exp of no key.
struct Joined {
  float lse;
  float weight_a, weight_b;  // of the normalised results

  __device__ static Joined of(float a, float b) {
    const float most = a > b ? a : b;
    if (most == -__builtin_inff()) return {most, 0.0f, 0.0f};
    const float sum = gcn::exp2(a - most) + gcn::exp2(b - most);
    const float scale = gcn::reciprocal(sum);
    return {most + gcn::log2(sum), gcn::exp2(a - most) * scale, gcn::exp2(b - most) * scale};
  }
};

}  // namespace flashattn
