// Classification and denormal handling on vectors of floats.
#pragma once

#include "exec/lanes.h"

namespace fasim {

inline constexpr uint32_t kF32Exponent = 0x7f800000, kF32Sign = 0x80000000, kF32Quiet = 0x00400000;

// Denormals become zeros of the same sign.
inline f32x16 flush_denormals(f32x16 v) {
  const u32x16 bits = as<u32x16>(v);
  return as<f32x16>((bits & kF32Exponent) == 0 ? bits & kF32Sign : bits);
}
inline f64x16 flush_denormals(f64x16 v) {
  const u64x16 bits = as<u64x16>(v);
  return as<f64x16>((bits & 0x7ff0000000000000) == 0 ? bits & 0x8000000000000000 : bits);
}
// Both halves of each lane.
inline u32x16 flush_half_denormals(u32x16 v) {
  const u16x32 bits = as<u16x32>(v);
  return as<u32x16>((bits & 0x7c00) == 0 ? bits & 0x8000 : bits);
}

template <class Vector>
inline auto is_nan(Vector v) {
  return v != v;
}
inline f32x16 quiet(f32x16 v) { return as<f32x16>(as<u32x16>(v) | kF32Quiet); }
inline i32x16 is_signalling(f32x16 v) {
  return ((as<i32x16>(v) & static_cast<int32_t>(kF32Quiet)) == 0) & is_nan(v);
}
template <class IntVector>
inline bool any(IntVector mask) {
  return __builtin_reduce_or(mask) != 0;
}

inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return __builtin_elementwise_fma(a, b, c); }
inline f64x16 fma(f64x16 a, f64x16 b, f64x16 c) { return __builtin_elementwise_fma(a, b, c); }
inline f64x16 widen(f32x16 v) { return __builtin_convertvector(v, f64x16); }
inline f32x16 narrow(f64x16 v) { return __builtin_convertvector(v, f32x16); }

// x - floor(x), kept below 1 as the hardware does for tiny negative x.
inline f32x16 fraction(f32x16 v) {
  const f32x16 f = v - __builtin_elementwise_floor(v);
  return f >= 1.0f ? f32x16(0x1.fffffep-1f) : f;
}
inline f64x16 fraction(f64x16 v) {
  const f64x16 f = v - __builtin_elementwise_floor(v);
  return f >= 1.0 ? f64x16(0x1.fffffffffffffp-1) : f;
}

// 2^e for e in the exponent range of a normal double.
inline f64x16 power_of_two(i64x16 e) { return as<f64x16>((e + 1023) << 52); }

// v * 2^e, rounded once; through double, whose exponent range holds every intermediate.
inline f32x16 scale_by_power(f32x16 v, i32x16 e) {
  // Beyond 300 steps an f32 has left its range in either direction.
  const i32x16 limited = e > 300 ? i32x16(300) : (e < -300 ? i32x16(-300) : e);
  return narrow(widen(v) * power_of_two(__builtin_convertvector(limited, i64x16)));
}
// In three steps, so that only the last can round: a double spans 2^-1074 to 2^1023.
inline f64x16 scale_by_power(f64x16 v, i32x16 e) {
  const i64x16 wide = __builtin_convertvector(e, i64x16);
  const i64x16 limited = wide > 2100 ? i64x16(2100) : (wide < -2100 ? i64x16(-2100) : wide);
  // Normalise a denormal first, so that downscaling by parts does not round twice.
  const i64x16 first = limited < -900 ? i64x16(0) : limited / 3;
  const i64x16 rest = limited - first;
  const i64x16 second = rest < -900 ? rest / 3 : rest / 2;
  const i64x16 third = rest < -900 ? second : rest - second;
  const f64x16 partial = v * power_of_two(first) * power_of_two(second) * power_of_two(third);
  return rest < -900 ? partial * power_of_two(rest - 2 * second) : partial;
}

// v = mantissa * 2^exponent with |mantissa| in [0.5, 1); zeros, infinities and NaNs: exponent 0.
inline i64x16 frexp_exponent(f64x16 v) {
  const f64x16 normal = v * 0x1p54;  // denormals become normal
  const i64x16 raw = as<i64x16>(v) >> 52 & 0x7ff, scaled = as<i64x16>(normal) >> 52 & 0x7ff;
  const i64x16 e = raw == 0 ? scaled - 54 - 1022 : raw - 1022;
  return ((raw == 0x7ff) | (v == 0.0)) ? i64x16(0) : e;
}
inline f64x16 frexp_mantissa(f64x16 v) {
  const i64x16 raw = as<i64x16>(v) >> 52 & 0x7ff;
  const i64x16 bits = as<i64x16>(raw == 0 ? v * 0x1p54 : v);
  const f64x16 m =
      as<f64x16>((bits & static_cast<int64_t>(0x800fffffffffffff)) | 0x3fe0000000000000);
  return ((raw == 0x7ff) | (v == 0.0)) ? v : m;
}
inline i32x16 frexp_exponent(f32x16 v) {
  return __builtin_convertvector(frexp_exponent(widen(v)), i32x16);
}
inline f32x16 frexp_mantissa(f32x16 v) { return narrow(frexp_mantissa(widen(v))); }

}  // namespace fasim
