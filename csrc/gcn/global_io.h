// Moves pieces of rows between global memory and registers.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// 8 halves. `aligned` is uniform over the grid: either one global_load_dwordx4, or 8 loads of 2
// bytes, the only width that a tensor of halves always allows.
__device__ inline half8 load8(const half* src, bool aligned) {
  if (aligned) return *reinterpret_cast<const half8*>(src);
  half8 x;
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = src[i];
  return x;
}

template <int n>
__device__ inline void store(half* dst, const half (&x)[n], bool aligned) {
  using Vec = half __attribute__((ext_vector_type(n)));
  if (aligned) {
    *reinterpret_cast<Vec*>(dst) = __builtin_bit_cast(Vec, x);
    return;
  }
#pragma unroll
  for (int i = 0; i < n; ++i) dst[i] = x[i];
}

}  // namespace flashattn::gcn
