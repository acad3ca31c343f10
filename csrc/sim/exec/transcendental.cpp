// exp2, log2, reciprocals, roots and sines: at most 1 ULP on the card, computed in double here, so
// that results are correctly rounded but for a few ties, and the same on every host.
#include "exec/transcendental.h"

#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

f64x16 exp2_fraction(f64x16 f) {
  // Taylor series of 2^f for |f| <= 0.5 to degree 9: the first term left out is below 7e-12.
  constexpr double kCoefficients[] = {1.0178086009239699e-7, 1.3215486790144307e-6,
                                      1.5252733804059840e-5, 1.5403530393381608e-4,
                                      1.3333558146428443e-3, 9.6181291076284772e-3,
                                      5.5504108664821580e-2, 2.4022650695910071e-1,
                                      6.9314718055994531e-1, 1.0};
  f64x16 sum = kCoefficients[0];
  for (size_t i = 1; i < std::size(kCoefficients); ++i) sum = fma(sum, f, f64x16(kCoefficients[i]));
  return sum;
}

}  // namespace

f64x16 exp2_wide(f32x16 x) {
  // Beyond these bounds every format's result is already 0 or infinite.
  const f32x16 limited = x > 200.0f ? f32x16(200.0f) : (x < -200.0f ? f32x16(-200.0f) : x);
  const f32x16 whole = __builtin_elementwise_roundeven(limited);
  const f64x16 power = exp2_fraction(widen(limited - whole));
  // Adding to the exponent field multiplies: the fraction is in [0.7, 1.5), far from both ends.
  const i32x16 steps = __builtin_convertvector(whole != whole ? f32x16(0.0f) : whole, i32x16);
  return as<f64x16>(as<i64x16>(power) + (__builtin_convertvector(steps, i64x16) << 52));
}

f64x16 log2_wide(f64x16 x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log2 m = 2 / ln 2 * atanh((m - 1) / (m + 1)), whose
  // argument is at most 0.172, so that 8 terms leave an error below 1e-14.
  f64x16 m = frexp_mantissa(x);
  i64x16 e = frexp_exponent(x);
  const i64x16 low = m < 0.70710678118654752;
  m = low ? m * 2.0 : m;
  e = low ? e - 1 : e;
  const f64x16 s = (m - 1.0) / (m + 1.0), square = s * s;
  f64x16 sum = 1.0 / 17.0;
  for (int k = 15; k >= 1; k -= 2) sum = fma(sum, square, f64x16(1.0 / k));
  const f64x16 result =
      fma(s * sum, f64x16(2.8853900817779268), __builtin_convertvector(e, f64x16));
  const f64x16 infinity = __builtin_inf(), nan = __builtin_nan("");
  const f64x16 special = x == 0.0 ? -infinity : (x < 0.0 ? nan : x);
  return ((x > 0.0) & (x < infinity)) ? result : special;
}

f64x16 sine_of_turns(f64x16 turns) {
  // To [-1/4, 1/4] turns, where the Taylor series to degree 17 is exact to 1e-13.
  const f64x16 r = turns - __builtin_elementwise_roundeven(turns);
  const f64x16 half = __builtin_elementwise_copysign(f64x16(0.5), r);
  const f64x16 folded = __builtin_elementwise_abs(r) > 0.25 ? half - r : r;
  const f64x16 angle = folded * 6.2831853071795865, square = angle * angle;
  f64x16 sum = 1.0;
  for (int k = 17; k >= 3; k -= 2) sum = 1.0 - square * sum / static_cast<double>(k * (k - 1));
  return angle * sum;
}

namespace {

f32x16 in(f32x16 v) { return flush_denormals(v); }
f32x16 out(f64x16 v) { return flush_denormals(narrow(v)); }

f64x16 root(f64x16 v) { return __builtin_elementwise_sqrt(v); }

// The card's domain is 256 turns in either direction; sin gives 0 and cos 1 beyond.
f64x16 turns_in_domain(f32x16 v, f64x16 turns) {
  return __builtin_elementwise_abs(widen(v)) > 256.0 ? f64x16(0.0) : turns;
}
f64x16 sine(f32x16 v) { return sine_of_turns(turns_in_domain(v, widen(v))); }
f64x16 cosine(f32x16 v) { return sine_of_turns(turns_in_domain(v, widen(v)) + 0.25); }

constexpr OpcodeRow kRows[] = {
    valu<F32(F32)>("v_exp_f32", [](auto a) { return out(exp2_wide(in(a))); }),
    valu<F32(F32)>("v_log_f32", [](auto a) { return out(log2_wide(widen(in(a)))); }),
    valu<F32(F32)>("v_rcp_f32", [](auto a) { return flush_denormals(1.0f / in(a)); }),
    valu<F32(F32)>("v_rcp_iflag_f32", [](auto a) { return flush_denormals(1.0f / in(a)); }),
    valu<F32(F32)>("v_rsq_f32", [](auto a) { return out(1.0 / root(widen(in(a)))); }),
    valu<F32(F32)>("v_sqrt_f32", [](auto a) { return __builtin_elementwise_sqrt(in(a)); }),
    valu<F32(F32)>("v_sin_f32", [](auto a) { return out(sine(in(a))); }),
    valu<F32(F32)>("v_cos_f32", [](auto a) { return out(cosine(in(a))); }),
    valu<F32(F32)>("v_exp_legacy_f32", [](auto a) { return out(exp2_wide(in(a))); }),
    valu<F32(F32)>("v_log_legacy_f32", [](auto a) { return out(log2_wide(widen(in(a)))); }),

    valu<F16(F16)>(
        "v_exp_f16", [](auto a) { return narrow(exp2_wide(a)); }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_log_f16", [](auto a) { return narrow(log2_wide(widen(a))); }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_rcp_f16", [](auto a) { return 1.0f / a; }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_rsq_f16", [](auto a) { return narrow(1.0 / root(widen(a))); }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_sqrt_f16", [](auto a) { return __builtin_elementwise_sqrt(a); }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_sin_f16", [](auto a) { return narrow(sine(a)); }, OpcodeRow::kFloatMath),
    valu<F16(F16)>(
        "v_cos_f16", [](auto a) { return narrow(cosine(a)); }, OpcodeRow::kFloatMath),

    valu<F64(F64)>(
        "v_rcp_f64", [](auto a) { return 1.0 / a; }, OpcodeRow::kFloatMath),
    valu<F64(F64)>(
        "v_rsq_f64", [](auto a) { return 1.0 / root(a); }, OpcodeRow::kFloatMath),
    valu<F64(F64)>(
        "v_sqrt_f64", [](auto a) { return root(a); }, OpcodeRow::kFloatMath),
};

}  // namespace

Rows transcendental_rows() { return kRows; }

}  // namespace fasim
