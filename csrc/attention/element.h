// bf16 in fp16 arithmetic, right for every finite value.
//
// fp16 holds the 8 significant bits of a bf16 number exactly, but not its 8 bits of exponent. So a
// row of Q or K is multiplied by the power of two that brings its largest element to 2^14 while it
// is staged, and its scores by the inverse. For V, whose rows are summed, one power serves a whole
// block: it follows the largest exponent seen so far, and O is rescaled when that grows. What falls
// below fp16's range then is 2^-29 of the largest element of its row (Q, K) or of V.
#pragma once

#include "gcn/bf16.h"
#include "gcn/vec.h"

namespace flashattn {

// A power of two and its inverse, from the exponent field of the largest element.
struct RowScale {
  static constexpr uint32_t kTop = 14;  // of the largest element, after scaling

  __device__ static float factor(uint32_t exponent) {
    const uint32_t field = 254 + kTop - exponent;
    return __builtin_bit_cast(float, (field < 254 ? field : 254) << 23);
  }
  // 2^-127 is a denormal.
  __device__ static float inverse(uint32_t exponent) {
    return __builtin_bit_cast(float, exponent > kTop ? (exponent - kTop) << 23 : 0x00400000u);
  }
};

}  // namespace flashattn
