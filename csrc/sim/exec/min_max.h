// Minimum, maximum and median as MODE.ieee = 1 defines them.
#pragma once

#include <type_traits>

#include "exec/float_bits.h"

namespace fasim {

template <class V>
struct FloatBits;
template <>
struct FloatBits<f32x16> {
  using Int = i32x16;
  static constexpr int32_t kQuiet = 0x00400000;
};
template <>
struct FloatBits<f32x32> {
  using Int = i32x32;
  static constexpr int32_t kQuiet = 0x00400000;
};
template <>
struct FloatBits<f64x16> {
  using Int = i64x16;
  static constexpr int64_t kQuiet = 0x0008000000000000;
};

// A quiet NaN loses against a number; a signalling one wins and becomes quiet. -0 < +0.
template <bool kMaximum, class V>
V extremum(V a, V b) {
  using Bits = FloatBits<V>;
  using Int = typename Bits::Int;
  const Int ia = as<Int>(a), ib = as<Int>(b);
  // Equal operands differ at most in the sign of zero.
  const V tie = as<V>(kMaximum ? ia & ib : ia | ib);
  const V ordered = a == b ? tie : ((kMaximum ? a > b : a < b) ? a : b);
  const Int nan_a = a != a, nan_b = b != b;
  if (!any(nan_a | nan_b)) [[likely]]
    return ordered;
  const Int signalling_a = nan_a & ((ia & Bits::kQuiet) == 0);
  const Int signalling_b = nan_b & ((ib & Bits::kQuiet) == 0);
  const V quiet_a = as<V>(ia | Bits::kQuiet), quiet_b = as<V>(ib | Bits::kQuiet);
  V result = nan_b ? (nan_a ? quiet_b : a) : (nan_a ? b : ordered);
  result = signalling_b ? quiet_b : result;
  return signalling_a ? quiet_a : result;
}
template <class V>
V minimum(V a, V b) {
  return extremum<false>(a, b);
}
template <class V>
V maximum(V a, V b) {
  return extremum<true>(a, b);
}
template <class V>
V median(V a, V b, V c) {
  const V smallest = minimum(minimum(a, b), c);
  const V middle = maximum(minimum(a, b), minimum(maximum(a, b), c));
  return ((a != a) | (b != b) | (c != c)) ? smallest : middle;
}

}  // namespace fasim
