// Normalised results over disjoint sets of keys, and their log-sum-exps, make one. All in base 2.
#pragma once

#include "attention/base2.h"
#include "gcn/math.h"

namespace flashattn {

// Two of them. -inf is the log-sum-exp of no key.
struct Joined {
  float lse;
  float weight_a, weight_b;  // of the normalised results

  __device__ static Joined of(float a, float b) {
    const float none = -__builtin_inff();
    if (a == none && b == none) return {none, 0.0f, 0.0f};
    const float most = a > b ? a : b;
    const float sum = gcn::exp2(a - most) + gcn::exp2(b - most);
    const float scale = gcn::reciprocal(sum);
    return {most + gcn::log2(sum), gcn::exp2(a - most) * scale, gcn::exp2(b - most) * scale};
  }
};

}  // namespace flashattn
