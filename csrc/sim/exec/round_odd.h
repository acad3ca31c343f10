// An f16 fma with one rounding, on f32 vectors.
#pragma once

#include "exec/min_max.h"

namespace fasim {

// a * b + c for f16 values, rounded to odd in f32, so that the conversion to f16 rounds the exact
// sum once: f32 has more than 11 + 2 significant bits, and the product of two f16 is exact in it.
template <class V>
V fma_half(V a, V b, V c) {
  using Int = typename FloatBits<V>::Int;
  const V product = a * b;
  const V sum = product + c;
  // Two-sum: what `sum` lost, exactly.
  const V part = sum - product;
  const V error = (product - (sum - part)) + (c - part);
  // Towards the error by one step where the sum is inexact and even.
  const Int bits = as<Int>(sum);
  const Int inexact = (error > 0.0f) | (error < 0.0f);
  const Int away = (error > 0.0f) == (sum > 0.0f);
  const Int step = away ? Int(1) : Int(-1);
  return as<V>((inexact & ((bits & 1) == 0)) ? bits + step : bits);
}

}  // namespace fasim
