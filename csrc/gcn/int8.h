// 8 bit numbers in fp16 arithmetic.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// Signed bytes over 2^6 as fp16, exactly: a byte b below the exponent of 16 makes 16 + b / 64; with
// its sign bit flipped it is unsigned, and kInt8Bias too large.
inline constexpr half kInt8Bias = 18;

__device__ inline half8 int8_to_biased_half(pairs2 bytes) {
  constexpr uint32_t exponent = 0x4c4c4c4c;
  pairs4 x;
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    const uint32_t biased = bytes[word] ^ 0x80808080u;
    x[2 * word] = __builtin_amdgcn_perm(exponent, biased, 0x04010400);
    x[2 * word + 1] = __builtin_amdgcn_perm(exponent, biased, 0x04030402);
  }
  return __builtin_bit_cast(half8, x);
}

// pairs[i]: bytes i of a and of b, without bias.
__device__ inline void int8_pairs(uint32_t a, uint32_t b, half2* pairs) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t bytes = __builtin_amdgcn_perm(b, a, 0x0c040c00 + i * 0x00010001);
    pairs[i] = as_half2(bytes ^ 0x4c804c80) - half2{kInt8Bias, kInt8Bias};
  }
}

}  // namespace flashattn::gcn
