// Opcodes on one f16 per lane. Values are f32 inside, where one f16 operation rounds exactly once.
#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/min_max.h"
#include "exec/round_odd.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kMath = OpcodeRow::kFloatMath;

f32x16 round_to_half(f32x16 v) { return half_to_float(float_to_half(v)); }
f32x16 mad_half(f32x16 a, f32x16 b, f32x16 c) { return round_to_half(a * b) + c; }

f32x16 fraction_half(f32x16 v) {
  const f32x16 f = v - __builtin_elementwise_floor(v);
  // The largest f16 below 1.
  return f >= 0x1.ffep-1f ? f32x16(0x1.ffcp-1f) : f;
}

constexpr OpcodeRow kRows[] = {
    valu<F16(F16, F16)>(
        "v_add_f16", [](auto a, auto b) { return a + b; }, kMath),
    valu<F16(F16, F16)>(
        "v_sub_f16", [](auto a, auto b) { return a - b; }, kMath),
    valu<F16(F16, F16)>(
        "v_subrev_f16", [](auto a, auto b) { return b - a; }, kMath),
    valu<F16(F16, F16)>(
        "v_mul_f16", [](auto a, auto b) { return a * b; }, kMath),
    valu<F16(F16Signalling, F16Signalling)>(
        "v_min_f16", [](auto a, auto b) { return minimum(a, b); }, kMath),
    valu<F16(F16Signalling, F16Signalling)>(
        "v_max_f16", [](auto a, auto b) { return maximum(a, b); }, kMath),
    valu<F16Half(F16Signalling, F16Signalling, F16Signalling)>(
        "v_min3_f16", [](auto a, auto b, auto c) { return minimum(minimum(a, b), c); }, kMath),
    valu<F16Half(F16Signalling, F16Signalling, F16Signalling)>(
        "v_max3_f16", [](auto a, auto b, auto c) { return maximum(maximum(a, b), c); }, kMath),
    valu<F16Half(F16Signalling, F16Signalling, F16Signalling)>(
        "v_med3_f16", [](auto a, auto b, auto c) { return median(a, b, c); }, kMath),
    valu<F16Half(F16, F16, F16)>(
        "v_fma_f16", [](auto a, auto b, auto c) { return fma_half(a, b, c); }, kMath),
    valu<F16(F16, F16, F16)>(
        "v_fma_legacy_f16", [](auto a, auto b, auto c) { return fma_half(a, b, c); }, kMath),
    valu<F16Half(F16, F16, F16)>(
        "v_mad_f16", [](auto a, auto b, auto c) { return mad_half(a, b, c); }, kMath),
    valu<F16(F16, F16, F16)>(
        "v_mad_legacy_f16", [](auto a, auto b, auto c) { return mad_half(a, b, c); }, kMath),
    // These three keep the high half, unlike other VOP2 opcodes on gfx9.
    valu<F16Low(F16, F16, Acc<F16>)>(
        "v_mac_f16", [](auto a, auto b, auto c) { return mad_half(a, b, c); }, kMath),
    valu<F16Low(F16, F16, F16)>(
        "v_madmk_f16", [](auto a, auto k, auto b) { return mad_half(a, k, b); }, kMath),
    valu<F16Low(F16, F16, F16)>(
        "v_madak_f16", [](auto a, auto b, auto k) { return mad_half(a, b, k); }, kMath),
    valu<F16(F16)>(
        "v_trunc_f16", [](auto a) { return __builtin_elementwise_trunc(a); }, kMath),
    valu<F16(F16)>(
        "v_ceil_f16", [](auto a) { return __builtin_elementwise_ceil(a); }, kMath),
    valu<F16(F16)>(
        "v_floor_f16", [](auto a) { return __builtin_elementwise_floor(a); }, kMath),
    valu<F16(F16)>(
        "v_rndne_f16", [](auto a) { return __builtin_elementwise_roundeven(a); }, kMath),
    valu<F16(F16)>(
        "v_fract_f16", [](auto a) { return fraction_half(a); }, kMath),
    valu<F16(F16, I16)>(
        "v_ldexp_f16", [](auto a, auto e) { return scale_by_power(a, e); }, kMath),
    valu<F16(F16)>(
        "v_frexp_mant_f16", [](auto a) { return frexp_mantissa(a); }, kMath),
    valu<I16(F16)>(
        "v_frexp_exp_i16_f16", [](auto a) { return frexp_exponent(a); }, kMath),
    valu<U32(F16Bits, F16Bits)>("v_pack_b32_f16", [](auto a, auto b) { return a | b << 16; }),
};

}  // namespace

Rows valu_f16_rows() { return kRows; }

}  // namespace fasim
