// bf16 beside hardware that has none: its bits are the upper half of an fp32's.
#pragma once

#include "gcn/dpp.h"
#include "gcn/vec.h"

namespace flashattn::gcn {

using ushort2 = uint16_t __attribute__((ext_vector_type(2)));
using ushort8 = uint16_t __attribute__((ext_vector_type(8)));

__device__ inline float bf16_to_float(uint32_t bits) {
  return __builtin_bit_cast(float, bits << 16);
}

// Round to nearest even; NaN stays NaN.
__device__ inline uint16_t float_to_bf16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The largest exponent field (8 bits) of 8 bf16 numbers.
__device__ inline uint32_t largest_exponent(half8 bits) {
  const auto x = __builtin_bit_cast(pairs4, bits);
  const auto magnitude = [](uint32_t pair) {
    return __builtin_bit_cast(ushort2, pair & 0x7fff7fffu);
  };
  const ushort2 most =
      __builtin_elementwise_max(__builtin_elementwise_max(magnitude(x[0]), magnitude(x[1])),
                                __builtin_elementwise_max(magnitude(x[2]), magnitude(x[3])));
  return (most.x > most.y ? most.x : most.y) >> 7;
}

inline constexpr uint32_t kNonFiniteExponent = 0xff;

// Of those that are finite.
__device__ inline uint32_t largest_finite_exponent(half8 bits) {
  const auto x = __builtin_bit_cast(ushort8, bits);
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t exponent = x[i] >> 7 & 0xff;
    most = exponent != kNonFiniteExponent && exponent > most ? exponent : most;
  }
  return most;
}

// 8 bf16 numbers as fp16, times a power of two; exact where the results are normal in fp16.
__device__ inline half8 bf16_to_half(half8 bits, float factor) {
  const auto x = __builtin_bit_cast(pairs4, bits);
  half8 y;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    y[2 * i] = static_cast<half>(bf16_to_float(x[i] & 0xffff) * factor);
    y[2 * i + 1] = static_cast<half>(bf16_to_float(x[i] >> 16) * factor);
  }
  return y;
}

// The maximum over `lanes` neighbours, in all of them.
template <int lanes>
__device__ inline uint32_t max_over(uint32_t x) {
  const auto most = [](uint32_t a, uint32_t b) { return a > b ? a : b; };
  if constexpr (lanes > 1) x = most(x, dpp::move_bits<dpp::kQuadSwap1>(x));
  if constexpr (lanes > 2) x = most(x, dpp::move_bits<dpp::kQuadSwap2>(x));
  if constexpr (lanes > 4) x = most(x, dpp::move_bits<dpp::kRowHalfMirror>(x));
  if constexpr (lanes > 8) x = most(x, dpp::move_bits<dpp::kRowMirror>(x));
  // ds_swizzle, bit mode: lane ^ 16, within 32.
  if constexpr (lanes > 16) x = most(x, __builtin_amdgcn_ds_swizzle(x, 0x401f));
  if constexpr (lanes > 32)
    x = most(static_cast<uint32_t>(__builtin_amdgcn_readlane(x, 0)),
             static_cast<uint32_t>(__builtin_amdgcn_readlane(x, 32)));
  return x;
}

}  // namespace flashattn::gcn
