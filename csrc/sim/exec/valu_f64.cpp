#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/min_max.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kMath = OpcodeRow::kFloatMath;

constexpr OpcodeRow kRows[] = {
    valu<F64(F64, F64)>(
        "v_add_f64", [](auto a, auto b) { return a + b; }, kMath),
    valu<F64(F64, F64)>(
        "v_mul_f64", [](auto a, auto b) { return a * b; }, kMath),
    valu<F64(F64, F64, F64)>(
        "v_fma_f64", [](auto a, auto b, auto c) { return fma(a, b, c); }, kMath),
    valu<F64(F64, F64)>(
        "v_min_f64", [](auto a, auto b) { return minimum(a, b); }, kMath),
    valu<F64(F64, F64)>(
        "v_max_f64", [](auto a, auto b) { return maximum(a, b); }, kMath),
    valu<F64(F64)>(
        "v_trunc_f64", [](auto a) { return __builtin_elementwise_trunc(a); }, kMath),
    valu<F64(F64)>(
        "v_ceil_f64", [](auto a) { return __builtin_elementwise_ceil(a); }, kMath),
    valu<F64(F64)>(
        "v_floor_f64", [](auto a) { return __builtin_elementwise_floor(a); }, kMath),
    valu<F64(F64)>(
        "v_rndne_f64", [](auto a) { return __builtin_elementwise_roundeven(a); }, kMath),
    valu<F64(F64)>(
        "v_fract_f64", [](auto a) { return fraction(a); }, kMath),
    valu<F64(F64, I32)>(
        "v_ldexp_f64", [](auto a, auto e) { return scale_by_power(a, e); }, kMath),
    valu<F64(F64)>(
        "v_frexp_mant_f64", [](auto a) { return frexp_mantissa(a); }, kMath),
    valu<I32(F64)>(
        "v_frexp_exp_i32_f64",
        [](auto a) { return __builtin_convertvector(frexp_exponent(a), i32x16); }, kMath),
};

}  // namespace

Rows valu_f64_rows() { return kRows; }

}  // namespace fasim
