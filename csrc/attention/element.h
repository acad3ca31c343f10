// The kinds of numbers that Q, K, V and O hold, and what the products make of them.
//
// fp16 and fp32 are multiplied as they are. bf16 is taken to fp16, right for every finite value:
// fp16 holds the 8 significant bits of a bf16 number exactly, but not its 8 bits of exponent. So a
// row of Q or K is multiplied by the power of two that brings its largest element to 2^14 while it
// is staged, and its scores by the inverse. For V, whose rows are summed, one power serves a whole
// block: it follows the largest exponent seen so far, and O is rescaled when that grows. What falls
// below fp16's range then is 2^-29 of the largest element of its row (Q, K) or of V.
#pragma once

#include "core/tile.h"
#include "gcn/bf16.h"
#include "gcn/math.h"
#include "gcn/vec.h"

namespace flashattn {

// acc + a * b over the numbers of a word.
template <Element E>
__device__ inline float multiply_add(uint32_t a, uint32_t b, float acc) {
  if constexpr (E == Element::f32)
    return __builtin_fmaf(__builtin_bit_cast(float, a), __builtin_bit_cast(float, b), acc);
  else
    return gcn::dot2(gcn::as_half2(a), gcn::as_half2(b), acc);
}

// The same in place, where a 0 in `a` makes 0 of whatever it meets, also of inf or NaN.
template <Element E>
__device__ inline void multiply_add_zero_wins(uint32_t a, uint32_t b, float& acc) {
  if constexpr (E == Element::f32) {
    gcn::add_product_zero_wins(acc, __builtin_bit_cast(float, a), __builtin_bit_cast(float, b));
  } else {
    const gcn::half2 x = gcn::as_half2(a), y = gcn::as_half2(b);
    gcn::add_product_zero_wins(acc, float{x[0]}, float{y[0]});
    gcn::add_product_zero_wins(acc, float{x[1]}, float{y[1]});
  }
}

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
