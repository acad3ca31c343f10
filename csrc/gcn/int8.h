// 8 bit numbers in fp16 arithmetic.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// 8 signed bytes over 2^6 as fp16, exactly. A byte b below the exponent of 16 makes
// 16 + b / 64; with its sign bit flipped it is unsigned, and 18 too large.
__device__ inline half8 int8_to_half(pairs2 bytes) {
  constexpr uint32_t exponent = 0x4c4c4c4c;
  const auto pair = [](uint32_t biased, uint32_t selector) {
    return as_half2(__builtin_amdgcn_perm(exponent, biased, selector)) - half2{18, 18};
  };
  half8 x;
#pragma unroll
  for (int word = 0; word < 2; ++word) {
    const uint32_t biased = bytes[word] ^ 0x80808080u;
    const half2 low = pair(biased, 0x04010400), high = pair(biased, 0x04030402);
    x[4 * word] = low.x;
    x[4 * word + 1] = low.y;
    x[4 * word + 2] = high.x;
    x[4 * word + 3] = high.y;
  }
  return x;
}

}  // namespace flashattn::gcn
