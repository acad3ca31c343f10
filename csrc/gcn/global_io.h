// Moves pieces of rows between global memory and registers by plain 64-bit addresses.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// n halves by loads of 2 bytes, the only width that a tensor of halves always allows; zeros from
// element `count` on.
template <int n = 8>
__device__ inline auto load_elements(const half* src, int count) {
  using Vec = half __attribute__((ext_vector_type(n)));
  Vec x{};
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < count) x[i] = src[i];
  return x;
}

template <class Number, int n>
__device__ inline void load(Number (&x)[n], const Number* src) {
  using Vec = Number __attribute__((ext_vector_type(n), aligned(4)));
  const Vec v = *reinterpret_cast<const Vec*>(src);
#pragma unroll
  for (int i = 0; i < n; ++i) x[i] = v[i];
}

template <class Number, int n>
__device__ inline void store(Number* dst, const Number (&x)[n]) {
  using Vec = Number __attribute__((ext_vector_type(n), aligned(4)));
  *reinterpret_cast<Vec*>(dst) = __builtin_bit_cast(Vec, x);
}

template <class Number, int n>
__device__ inline void store_elements(Number* dst, const Number (&x)[n], int count) {
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < count) dst[i] = x[i];
}

}  // namespace flashattn::gcn
