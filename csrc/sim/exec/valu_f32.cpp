#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/min_max.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kMath = OpcodeRow::kFloatMath;
constexpr uint16_t kMathAcc = OpcodeRow::kFloatMath | OpcodeRow::kReadsDst;

// v_mad_f32 and v_mac_f32 round the product and flush denormals whatever MODE says.
f32x16 mad_flushed(f32x16 a, f32x16 b, f32x16 c) {
  const f32x16 product = flush_denormals(flush_denormals(a) * flush_denormals(b));
  return flush_denormals(product + flush_denormals(c));
}

// 0 times anything is 0 in the legacy opcode.
f32x16 multiply_legacy(f32x16 a, f32x16 b) {
  return ((a == 0.0f) | (b == 0.0f)) ? f32x16(0.0f) : a * b;
}

constexpr OpcodeRow kRows[] = {
    valu<F32(F32, F32)>(
        "v_add_f32", [](auto a, auto b) { return a + b; }, kMath),
    valu<F32(F32, F32)>(
        "v_sub_f32", [](auto a, auto b) { return a - b; }, kMath),
    valu<F32(F32, F32)>(
        "v_subrev_f32", [](auto a, auto b) { return b - a; }, kMath),
    valu<F32(F32, F32)>(
        "v_mul_f32", [](auto a, auto b) { return a * b; }, kMath),
    valu<F32(F32, F32)>(
        "v_mul_legacy_f32", [](auto a, auto b) { return multiply_legacy(a, b); }, kMath),
    valu<F32(F32, F32)>(
        "v_min_f32", [](auto a, auto b) { return minimum(a, b); }, kMath),
    valu<F32(F32, F32)>(
        "v_max_f32", [](auto a, auto b) { return maximum(a, b); }, kMath),
    valu<F32(F32, F32, F32)>(
        "v_min3_f32", [](auto a, auto b, auto c) { return minimum(minimum(a, b), c); }, kMath),
    valu<F32(F32, F32, F32)>(
        "v_max3_f32", [](auto a, auto b, auto c) { return maximum(maximum(a, b), c); }, kMath),
    valu<F32(F32, F32, F32)>(
        "v_med3_f32", [](auto a, auto b, auto c) { return median(a, b, c); }, kMath),
    valu<F32(F32, F32, F32)>(
        "v_fma_f32", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMath),
    valu<F32(F32, F32, Acc<F32>)>(
        "v_fmac_f32", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMathAcc),
    valu<F32(F32, F32, F32)>("v_mad_f32",
                             [](auto a, auto b, auto c) { return mad_flushed(a, b, c); }),
    valu<F32(F32, F32, Acc<F32>)>("v_mac_f32",
                                  [](auto a, auto b, auto c) { return mad_flushed(a, b, c); }),
    // The constant K is printed where it is used: a * K + b and a * b + K.
    valu<F32(F32, F32, F32)>("v_madmk_f32",
                             [](auto a, auto k, auto b) { return mad_flushed(a, k, b); }),
    valu<F32(F32, F32, F32)>("v_madak_f32",
                             [](auto a, auto b, auto k) { return mad_flushed(a, b, k); }),
    valu<F32(F32)>(
        "v_trunc_f32", [](auto a) { return __builtin_elementwise_trunc(a); }, kMath),
    valu<F32(F32)>(
        "v_ceil_f32", [](auto a) { return __builtin_elementwise_ceil(a); }, kMath),
    valu<F32(F32)>(
        "v_floor_f32", [](auto a) { return __builtin_elementwise_floor(a); }, kMath),
    valu<F32(F32)>(
        "v_rndne_f32", [](auto a) { return __builtin_elementwise_roundeven(a); }, kMath),
    valu<F32(F32)>(
        "v_fract_f32", [](auto a) { return fraction(a); }, kMath),
    valu<F32(F32, I32)>(
        "v_ldexp_f32", [](auto a, auto e) { return scale_by_power(a, e); }, kMath),
    valu<I32(F32)>(
        "v_frexp_exp_i32_f32", [](auto a) { return frexp_exponent(a); }, kMath),
    valu<F32(F32)>(
        "v_frexp_mant_f32", [](auto a) { return frexp_mantissa(a); }, kMath),
    valu<F32(Mix, Mix, Mix)>(
        "v_fma_mix_f32", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMath),
    // Rounded to f32 first, then to f16: clang selects these for a strict f32 fma and a conversion.
    valu<F16Low(Mix, Mix, Mix)>(
        "v_fma_mixlo_f16", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMath),
    valu<F16High(Mix, Mix, Mix)>(
        "v_fma_mixhi_f16", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMath),
};

}  // namespace

Rows valu_f32_rows() { return kRows; }

}  // namespace fasim
