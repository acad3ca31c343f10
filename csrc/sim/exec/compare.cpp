// v_cmp and v_cmpx: a mask with one bit per lane; cmpx writes EXEC as well.
#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

template <class T, class Fn>
constexpr OpcodeRow compare(std::string_view name, Fn fn, uint16_t flags) {
  return valu<Mask(T, T)>(name, fn, flags);
}

// Class bits of v_cmp_class, from bit 0 up.
enum ClassBit : int {
  kSignallingNan = 1 << 0,
  kQuietNan = 1 << 1,
  kNegativeInfinity = 1 << 2,
  kNegativeNormal = 1 << 3,
  kNegativeDenormal = 1 << 4,
  kNegativeZero = 1 << 5,
  kPositiveZero = 1 << 6,
  kPositiveDenormal = 1 << 7,
  kPositiveNormal = 1 << 8,
  kPositiveInfinity = 1 << 9,
};

// Tests the raw bits of a float with `mantissa` fraction bits and `exponent` exponent bits.
template <class Bits>
auto classify(Bits v, i32x16 wanted, int mantissa, int exponent) {
  const Bits max_exponent = (Bits(1) << exponent) - 1;
  const Bits e = v >> mantissa & max_exponent, m = v & ((Bits(1) << mantissa) - 1);
  auto narrow_mask = [](auto mask) { return __builtin_convertvector(mask, i32x16); };
  const i32x16 negative = narrow_mask((v >> (mantissa + exponent) & 1) != 0);
  const i32x16 top = narrow_mask(e == max_exponent), bottom = narrow_mask(e == 0);
  const i32x16 empty = narrow_mask(m == 0), is_quiet = narrow_mask((m >> (mantissa - 1) & 1) != 0);
  auto by_sign = [&](int minus, int plus) { return negative ? i32x16(minus) : i32x16(plus); };
  const i32x16 nan = is_quiet ? i32x16(kQuietNan) : i32x16(kSignallingNan);
  const i32x16 high = empty ? by_sign(kNegativeInfinity, kPositiveInfinity) : nan;
  const i32x16 low =
      empty ? by_sign(kNegativeZero, kPositiveZero) : by_sign(kNegativeDenormal, kPositiveDenormal);
  const i32x16 cls = top ? high : (bottom ? low : by_sign(kNegativeNormal, kPositiveNormal));
  return (cls & wanted) != 0;
}

#define ROW(prefix, op, type, T, flags, expression)                                                \
  compare<T>(                                                                                      \
      prefix op type, []([[maybe_unused]] auto a, [[maybe_unused]] auto b) { return expression; }, \
      flags)

// clang-format off
#define FLOAT_COMPARES(prefix, type, T, flags)             \
  ROW(prefix, "_f_", type, T, flags, (a < b) & (a > b)),   \
  ROW(prefix, "_lt_", type, T, flags, a < b),              \
  ROW(prefix, "_eq_", type, T, flags, a == b),             \
  ROW(prefix, "_le_", type, T, flags, a <= b),             \
  ROW(prefix, "_gt_", type, T, flags, a > b),              \
  ROW(prefix, "_lg_", type, T, flags, (a < b) | (a > b)),  \
  ROW(prefix, "_ge_", type, T, flags, a >= b),             \
  ROW(prefix, "_o_", type, T, flags, (a == a) & (b == b)), \
  ROW(prefix, "_u_", type, T, flags, (a != a) | (b != b)), \
  ROW(prefix, "_nge_", type, T, flags, ~(a >= b)),         \
  ROW(prefix, "_nlg_", type, T, flags, ~((a < b) | (a > b))), \
  ROW(prefix, "_ngt_", type, T, flags, ~(a > b)),          \
  ROW(prefix, "_nle_", type, T, flags, ~(a <= b)),         \
  ROW(prefix, "_neq_", type, T, flags, a != b),            \
  ROW(prefix, "_nlt_", type, T, flags, ~(a < b)),          \
  ROW(prefix, "_tru_", type, T, flags, (a == b) | (a != b))

#define INT_COMPARES(prefix, type, T, flags)               \
  ROW(prefix, "_f_", type, T, flags, a != a),              \
  ROW(prefix, "_lt_", type, T, flags, a < b),              \
  ROW(prefix, "_eq_", type, T, flags, a == b),             \
  ROW(prefix, "_le_", type, T, flags, a <= b),             \
  ROW(prefix, "_gt_", type, T, flags, a > b),              \
  ROW(prefix, "_ne_", type, T, flags, a != b),             \
  ROW(prefix, "_ge_", type, T, flags, a >= b),             \
  ROW(prefix, "_t_", type, T, flags, a == a)

#define ALL_COMPARES(prefix, flags)                                          \
  FLOAT_COMPARES(prefix, "f32", F32, (flags) | OpcodeRow::kFloatMath),       \
  FLOAT_COMPARES(prefix, "f16", F16, (flags) | OpcodeRow::kFloatMath),       \
  FLOAT_COMPARES(prefix, "f64", F64, (flags) | OpcodeRow::kFloatMath),       \
  INT_COMPARES(prefix, "i32", I32, flags), INT_COMPARES(prefix, "u32", U32, flags), \
  INT_COMPARES(prefix, "i16", I16, flags), INT_COMPARES(prefix, "u16", U16, flags), \
  INT_COMPARES(prefix, "i64", I64, flags), INT_COMPARES(prefix, "u64", U64, flags), \
  valu<Mask(F32Bits, I32)>(prefix "_class_f32", [](auto v, auto c) { return classify(v, c, 23, 8); }, flags),  \
  valu<Mask(F16Bits, I32)>(prefix "_class_f16", [](auto v, auto c) { return classify(v, c, 10, 5); }, flags),  \
  valu<Mask(F64Bits, I32)>(prefix "_class_f64", [](auto v, auto c) { return classify(v, c, 52, 11); }, flags)
// clang-format on

constexpr OpcodeRow kRows[] = {
    ALL_COMPARES("v_cmp", 0),
    ALL_COMPARES("v_cmpx", OpcodeRow::kWritesExec),
};

}  // namespace

Rows compare_rows() { return kRows; }

}  // namespace fasim
