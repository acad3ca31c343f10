// Floating-point numbers of 8 bits (OCP 8-bit Floating Point Specification 1.0), which gfx906 has
// no instruction for: read by moving their bits to where fp16 has them, and rounded to.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

using short2 = int16_t __attribute__((ext_vector_type(2)));

// The bytes of a word as the upper ones of halves.
struct UpperBytes {
  uint32_t low, high;

  __device__ explicit UpperBytes(uint32_t word)
      : low(__builtin_amdgcn_perm(0, word, 0x010c000c)),
        high(__builtin_amdgcn_perm(0, word, 0x030c020c)) {}
};

// Bytes i of a and of b as the upper ones of halves.
__device__ inline uint32_t upper_bytes(uint32_t a, uint32_t b, uint32_t i) {
  return __builtin_amdgcn_perm(b, a, 0x040c000c + i * 0x01000100);
}

// e5m2 is the upper byte of fp16.
__device__ inline half8 e5m2_to_half(pairs2 bytes) {
  const UpperBytes a(bytes[0]), b(bytes[1]);
  return __builtin_bit_cast(half8, pairs4{a.low, a.high, b.low, b.high});
}

// pairs[i]: bytes i of a and of b.
__device__ inline void e5m2_pairs(uint32_t a, uint32_t b, half2* pairs) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) pairs[i] = as_half2(upper_bytes(a, b, i));
}

// a * 0 + b: b, but NaN where a is inf or NaN. The compiler would be free to fold it.
__device__ inline half2 fma_zero(half2 a, half2 b) {
  half2 x;
  asm("v_pk_fma_f16 %0, %1, 0, %2" : "=v"(x) : "v"(a), "v"(b));
  return x;
}

// Two numbers of e4m3fn over 2^8, exactly, also where that is denormal: its exponent has the lower
// four bits of fp16's, and a bias that is 8 less. It has no infinity, and one NaN beside its
// largest number, 448.
__device__ inline half2 e4m3_to_half(uint32_t upper) {
  constexpr half over = 34976;  // 448 / 2^8 times it is finite in fp16, NaN's 480 / 2^8 is not
  const auto shifted = __builtin_bit_cast(uint32_t, __builtin_bit_cast(short2, upper) >> 1);
  const half2 x = as_half2(shifted & 0xbfffbfff);  // the sign came twice
  return fma_zero(x * half2{over, over}, x);
}

__device__ inline half8 e4m3_to_half(pairs2 bytes) {
  const auto pair = [](uint32_t upper) { return as_bits(e4m3_to_half(upper)); };
  const UpperBytes a(bytes[0]), b(bytes[1]);
  return __builtin_bit_cast(half8, pairs4{pair(a.low), pair(a.high), pair(b.low), pair(b.high)});
}

__device__ inline void e4m3_pairs(uint32_t a, uint32_t b, half2* pairs) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) pairs[i] = e4m3_to_half(upper_bytes(a, b, i));
}

// What formats have: bits of the fraction, the exponent's bias, the largest number.
struct Fp8 {
  int fraction, bias, largest;
};
inline constexpr Fp8 kE4m3{3, 7, 448}, kE5m2{2, 15, 57344};

// To the nearest, ties to even; what is too large, also inf, becomes the largest. NaN stays.
template <Fp8 F>
__device__ inline uint8_t to_fp8(float x) {
  const uint32_t sign = __builtin_bit_cast(uint32_t, x) >> 24 & 0x80;
  if (x != x) return 0x7f;
  const float magnitude = __builtin_fminf(__builtin_fabsf(x), static_cast<float>(F.largest));
  constexpr float smallest_normal = __builtin_bit_cast(float, (128 - F.bias) << 23);
  if (magnitude < smallest_normal) {
    constexpr float steps = __builtin_bit_cast(float, (126 + F.bias + F.fraction) << 23);
    return sign | static_cast<uint8_t>(__builtin_rintf(magnitude * steps));
  }
  constexpr int dropped = 23 - F.fraction;
  const uint32_t bits = __builtin_bit_cast(uint32_t, magnitude);
  const uint32_t rounded = bits + (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return sign | static_cast<uint8_t>((rounded >> dropped) - ((127 - F.bias) << F.fraction));
}

}  // namespace flashattn::gcn
