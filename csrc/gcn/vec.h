// Register vectors that match what one instruction moves or multiplies.
#pragma once

#include <cstdint>

namespace flashattn::gcn {

using half = _Float16;
using half2 = half __attribute__((ext_vector_type(2)));    // one VGPR
using half4 = half __attribute__((ext_vector_type(4)));    // b64
using half8 = half __attribute__((ext_vector_type(8)));    // b128
using float4 = float __attribute__((ext_vector_type(4)));  // b128
template <int n>
using Words = uint32_t __attribute__((ext_vector_type(n)));
using pairs2 = uint32_t __attribute__((ext_vector_type(2)));  // b64, each a half2
using pairs4 = uint32_t __attribute__((ext_vector_type(4)));  // b128, each a half2

__device__ inline half2 as_half2(uint32_t x) { return __builtin_bit_cast(half2, x); }
__device__ inline uint32_t as_bits(half2 x) { return __builtin_bit_cast(uint32_t, x); }

// Word i of the result is word (i + by) % 4; `by` may differ between lanes.
__device__ inline pairs4 rotated(pairs4 x, int by) {
  x = by & 1 ? pairs4{x[1], x[2], x[3], x[0]} : x;
  return by & 2 ? pairs4{x[2], x[3], x[0], x[1]} : x;
}

}  // namespace flashattn::gcn
