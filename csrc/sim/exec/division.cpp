// v_div_scale, v_div_fmas and v_div_fixup: the frame of an IEEE division around v_rcp and FMAs.
#include <type_traits>

#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

struct SingleFormat {
  using Float = f32x16;
  using Int = i32x16;
  static constexpr int kMantissa = 23, kMaxBiased = 255;
  static constexpr int kScale = 64;     // exponent steps of v_div_scale
  static constexpr int kFarApart = 96;  // numerator so much larger that the quotient may overflow
  static constexpr int kTiny = 23;      // biased exponent of a numerator whose residuals vanish
  static constexpr int kUnderflow = -150;
  static constexpr int32_t kSign = static_cast<int32_t>(0x80000000), kQuietBit = 0x00400000;
  static constexpr int32_t kInvalid = static_cast<int32_t>(0xffc00000);
  static f32x16 factor(int exponent) { return as<f32x16>(i32x16((exponent + 127) << 23)); }
  static f32x16 denormal_step() { return as<f32x16>(i32x16(1)); }
  static f32x16 half_denormal() { return factor(-150 + kScale); }  // before scaling down
};
struct DoubleFormat {
  using Float = f64x16;
  using Int = i64x16;
  static constexpr int kMantissa = 52, kMaxBiased = 2047;
  static constexpr int kScale = 128, kFarApart = 768, kTiny = 53, kUnderflow = -1075;
  static constexpr int64_t kSign = static_cast<int64_t>(0x8000000000000000);
  static constexpr int64_t kQuietBit = 0x0008000000000000;
  static constexpr int64_t kInvalid = static_cast<int64_t>(0xfff8000000000000);
  static f64x16 factor(int exponent) { return power_of_two(i64x16(exponent)); }
  static f64x16 denormal_step() { return as<f64x16>(i64x16(1)); }
  static f64x16 half_denormal() { return factor(-1075 + kScale); }
};

template <class F>
typename F::Int biased_exponent(typename F::Float v) {
  return as<typename F::Int>(v) >> F::kMantissa & F::kMaxBiased;
}
template <class F>
typename F::Int denormal(typename F::Float v) {
  return (biased_exponent<F>(v) == 0) & (v != typename F::Float(0));
}

// `value` is the numerator or the denominator, whichever this instruction scales. The flag tells
// v_div_fmas to undo what could not be done to both.
template <class F>
auto div_scale(typename F::Float value, typename F::Float denominator,
               typename F::Float numerator) {
  using Float = typename F::Float;
  using Int = typename F::Int;
  const Float up = value * F::factor(F::kScale), down = value * F::factor(-F::kScale);
  const Int is_denominator = as<Int>(value) == as<Int>(denominator);
  const Int is_numerator = as<Int>(value) == as<Int>(numerator);
  const Int zero = (numerator == Float(0)) | (denominator == Float(0));
  const Int apart = biased_exponent<F>(numerator) - biased_exponent<F>(denominator) >= F::kFarApart;
  const Int small_denominator = denormal<F>(denominator);
  const Int small_reciprocal = denormal<F>(Float(1) / denominator);
  // Also where the quotient rounds to 0: whether it does is for the last step to decide.
  const Int small_quotient = biased_exponent<F>(numerator / denominator) == 0;
  const Int tiny_numerator = biased_exponent<F>(numerator) <= F::kTiny;

  // From the least to the most important case.
  Float result = tiny_numerator ? up : value;
  result = small_quotient ? (is_numerator ? up : value) : result;
  result = small_reciprocal ? down : result;
  result = (small_reciprocal & small_quotient) ? (is_denominator ? down : value) : result;
  result = small_denominator ? up : result;
  result = apart ? (is_denominator ? up : value) : result;
  result = zero ? as<Float>(Int(F::kInvalid)) : result;
  const Int flag = ~zero & (apart | (~small_denominator & small_quotient));
  if constexpr (std::is_same_v<F, SingleFormat>) {
    return WithMask<Float>{result, flag};
  } else {
    return WithMask<Float>{result, __builtin_convertvector(flag, i32x16)};
  }
}

// sum * 2^-kScale where `sum` is a * b + c rounded: one rounding of the exact value, also when the
// quotient is denormal and `sum` lies in the middle of two denormals.
template <class F>
typename F::Float scale_down(typename F::Float a, typename F::Float b, typename F::Float c,
                             typename F::Float sum) {
  using Float = typename F::Float;
  const Float product = a * b, total = product + c, part = total - product;
  const Float low = ((product - (total - part)) + (c - part)) + fma(a, b, -product);
  const Float lost = (total - sum) + low;  // what rounding took from `sum`
  const Float scaled = sum * F::factor(-F::kScale);
  const Float moved = sum - scaled * F::factor(F::kScale);
  const Float half_step = F::half_denormal(), step = F::denormal_step();
  const auto up = (moved == half_step) & (lost > Float(0));
  const auto down = (moved == -half_step) & (lost < Float(0));
  return up ? scaled + step : (down ? scaled - step : scaled);
}

// A flagged quotient is large when only the denominator was scaled up, small when the numerator
// was.
template <class F>
typename F::Float div_fmas(typename F::Float a, typename F::Float b, typename F::Float c,
                           i32x16 flag) {
  using Float = typename F::Float;
  const Float sum = fma(a, b, c);
  const auto large = biased_exponent<F>(c) > F::kMaxBiased / 2;
  const Float scaled = large ? sum * F::factor(F::kScale) : scale_down<F>(a, b, c, sum);
  return __builtin_convertvector(flag, typename F::Int) ? scaled : sum;
}

template <class F>
typename F::Float div_fixup(typename F::Float quotient, typename F::Float denominator,
                            typename F::Float numerator) {
  using Float = typename F::Float;
  using Int = typename F::Int;
  const Int sign = (as<Int>(denominator) ^ as<Int>(numerator)) & F::kSign;
  const Float infinity = __builtin_inff();
  const Float zero = Float(0), size_n = __builtin_elementwise_abs(numerator),
              size_d = __builtin_elementwise_abs(denominator);
  const Float signed_zero = as<Float>(sign), signed_infinity = as<Float>(as<Int>(infinity) | sign);
  const Int gap = biased_exponent<F>(numerator) - biased_exponent<F>(denominator);
  const Int invalid =
      ((size_n == zero) & (size_d == zero)) | ((size_n == infinity) & (size_d == infinity));

  Float result = as<Float>((as<Int>(quotient) & ~F::kSign) | sign);
  // An overflow leaves inf - inf in the refinement of the quotient.
  result = quotient != quotient ? signed_infinity : result;
  result = gap < F::kUnderflow ? signed_zero : result;
  result = ((size_d == infinity) | (size_n == zero)) ? signed_zero : result;
  result = ((size_d == zero) | (size_n == infinity)) ? signed_infinity : result;
  result = invalid ? as<Float>(Int(F::kInvalid)) : result;
  result = denominator != denominator ? as<Float>(as<Int>(denominator) | F::kQuietBit) : result;
  return numerator != numerator ? as<Float>(as<Int>(numerator) | F::kQuietBit) : result;
}

constexpr OpcodeRow kRows[] = {
    valu<AndMask<F32>(F32, F32, F32)>(
        "v_div_scale_f32", [](auto v, auto d, auto n) { return div_scale<SingleFormat>(v, d, n); }),
    valu<AndMask<F64>(F64, F64, F64)>(
        "v_div_scale_f64", [](auto v, auto d, auto n) { return div_scale<DoubleFormat>(v, d, n); }),
    valu<F32(F32, F32, F32, VccIn)>(
        "v_div_fmas_f32",
        [](auto a, auto b, auto c, auto flag) { return div_fmas<SingleFormat>(a, b, c, flag); }),
    valu<F64(F64, F64, F64, VccIn)>(
        "v_div_fmas_f64",
        [](auto a, auto b, auto c, auto flag) { return div_fmas<DoubleFormat>(a, b, c, flag); }),
    valu<F32(F32, F32, F32)>(
        "v_div_fixup_f32", [](auto q, auto d, auto n) { return div_fixup<SingleFormat>(q, d, n); }),
    valu<F64(F64, F64, F64)>(
        "v_div_fixup_f64", [](auto q, auto d, auto n) { return div_fixup<DoubleFormat>(q, d, n); }),
    valu<F16Half(F16, F16, F16)>(
        "v_div_fixup_f16", [](auto q, auto d, auto n) { return div_fixup<SingleFormat>(q, d, n); }),
};

}  // namespace

Rows division_rows() { return kRows; }

}  // namespace fasim
