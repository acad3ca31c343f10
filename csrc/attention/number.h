// One number of Q, K, V or O: how it lies in memory, and as fp32.
#pragma once

#include "core/tile.h"
#include "gcn/bf16.h"
#include "gcn/vec.h"

namespace flashattn {

// bf16 numbers are held as the halves that have their bits.
template <Element E>
__device__ inline auto narrow(float x) {
  if constexpr (E == Element::f32)
    return x;
  else if constexpr (E == Element::bf16)
    return __builtin_bit_cast(gcn::half, gcn::float_to_bf16(x));
  else
    return static_cast<gcn::half>(x);
}

template <Element E>
using Number = decltype(narrow<E>(0.0f));

template <Element E>
__device__ inline float widen(Number<E> x) {
  if constexpr (E == Element::bf16)
    return gcn::bf16_to_float(__builtin_bit_cast(uint16_t, x));
  else
    return static_cast<float>(x);
}

}  // namespace flashattn
