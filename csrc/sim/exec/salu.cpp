#include <bit>

#include "exec/rows.h"
#include "exec/scalar.h"

namespace fasim {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

WithScc<u32> add(u32 a, u32 b, u32 carry) {
  const u64 sum = static_cast<u64>(a) + b + carry;
  return {static_cast<u32>(sum), sum >> 32 != 0};
}
WithScc<u32> subtract(u32 a, u32 b, u32 borrow) {
  return {a - b - borrow, static_cast<u64>(b) + borrow > a};
}
WithScc<i32> add_signed(i32 a, i32 b) {
  i32 sum;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  return {sum, overflow};
}
WithScc<i32> subtract_signed(i32 a, i32 b) {
  i32 difference;
  const bool overflow = __builtin_sub_overflow(a, b, &difference);
  return {difference, overflow};
}
WithScc<u32> shift_add(u32 a, int n, u32 b) {
  const u64 sum = (static_cast<u64>(a) << n) + b;
  return {static_cast<u32>(sum), sum >> 32 != 0};
}

// `control`: offset in the low bits, width from bit 16. A field that passes the top bit ends there.
template <class T>
T extract_field(T v, u32 control, u32 offset_mask) {
  constexpr u32 kBits = sizeof(T) * 8;
  const u32 offset = control & offset_mask, width = control >> 16 & 0x7f;
  if (width == 0) return 0;
  const T shifted = v >> offset;
  if (offset + width >= kBits) return shifted;
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(shifted) << (kBits - width)) >>
         (kBits - width);
}

template <class T>
T reverse(T v) {
  T out = 0;
  for (size_t i = 0; i < sizeof(T) * 8; ++i) out |= (v >> i & 1) << (sizeof(T) * 8 - 1 - i);
  return out;
}
// -1 where there is no such bit.
template <class T>
i32 first_set(T v) {
  return v ? std::countr_zero(v) : -1;
}
template <class T>
i32 leading_zeros(T v) {
  return v ? std::countl_zero(v) : -1;
}
template <class T>
i32 leading_signs(T v) {
  using U = std::make_unsigned_t<T>;
  return leading_zeros(static_cast<U>(v < 0 ? ~v : v));
}
template <class T>
T field_mask(u32 width, u32 offset) {
  constexpr u32 kMask = sizeof(T) * 8 - 1;
  return ((T{1} << (width & kMask)) - 1) << (offset & kMask);
}

constexpr OpcodeRow kRows[] = {
    salu<u32(u32)>("s_mov_b32", [](u32 a) { return a; }),
    salu<u64(u64)>("s_mov_b64", [](u64 a) { return a; }),
    salu<u32(SccIn, u32, OldDst<u32>)>("s_cmov_b32",
                                       [](bool scc, u32 a, u32 old) { return scc ? a : old; }),
    salu<u64(SccIn, u64, OldDst<u64>)>("s_cmov_b64",
                                       [](bool scc, u64 a, u64 old) { return scc ? a : old; }),
    salu<i32(Simm16)>("s_movk_i32", [](i32 k) { return k; }),
    salu<i32(SccIn, Simm16, OldDst<i32>)>("s_cmovk_i32",
                                          [](bool scc, i32 k, i32 old) { return scc ? k : old; }),
    salu<WithScc<i32>(Simm16, OldDst<i32>)>("s_addk_i32",
                                            [](i32 k, i32 old) { return add_signed(old, k); }),
    salu<u32(Simm16, OldDst<u32>)>("s_mulk_i32",
                                   [](i32 k, u32 old) { return old * static_cast<u32>(k); }),

    salu<WithScc<u32>(u32, u32)>("s_add_u32", [](u32 a, u32 b) { return add(a, b, 0); }),
    salu<WithScc<u32>(u32, u32)>("s_sub_u32", [](u32 a, u32 b) { return subtract(a, b, 0); }),
    salu<WithScc<u32>(u32, u32, SccIn)>("s_addc_u32",
                                        [](u32 a, u32 b, bool scc) { return add(a, b, scc); }),
    salu<WithScc<u32>(u32, u32, SccIn)>("s_subb_u32",
                                        [](u32 a, u32 b, bool scc) { return subtract(a, b, scc); }),
    salu<WithScc<i32>(i32, i32)>("s_add_i32", [](i32 a, i32 b) { return add_signed(a, b); }),
    salu<WithScc<i32>(i32, i32)>("s_sub_i32", [](i32 a, i32 b) { return subtract_signed(a, b); }),
    salu<WithScc<u32>(u32, u32)>("s_lshl1_add_u32",
                                 [](u32 a, u32 b) { return shift_add(a, 1, b); }),
    salu<WithScc<u32>(u32, u32)>("s_lshl2_add_u32",
                                 [](u32 a, u32 b) { return shift_add(a, 2, b); }),
    salu<WithScc<u32>(u32, u32)>("s_lshl3_add_u32",
                                 [](u32 a, u32 b) { return shift_add(a, 3, b); }),
    salu<WithScc<u32>(u32, u32)>("s_lshl4_add_u32",
                                 [](u32 a, u32 b) { return shift_add(a, 4, b); }),
    salu<u32(u32, u32)>("s_mul_i32", [](u32 a, u32 b) { return a * b; }),
    salu<u32(u32, u32)>(
        "s_mul_hi_u32",
        [](u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }),
    salu<i32(i32, i32)>(
        "s_mul_hi_i32",
        [](i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }),
    // SCC says whether the first operand was chosen.
    salu<WithScc<i32>(i32, i32)>("s_min_i32",
                                 [](i32 a, i32 b) { return WithScc<i32>{a < b ? a : b, a < b}; }),
    salu<WithScc<i32>(i32, i32)>("s_max_i32",
                                 [](i32 a, i32 b) { return WithScc<i32>{a > b ? a : b, a > b}; }),
    salu<WithScc<u32>(u32, u32)>("s_min_u32",
                                 [](u32 a, u32 b) { return WithScc<u32>{a < b ? a : b, a < b}; }),
    salu<WithScc<u32>(u32, u32)>("s_max_u32",
                                 [](u32 a, u32 b) { return WithScc<u32>{a > b ? a : b, a > b}; }),
    // The difference wraps before its sign is looked at.
    salu<NonZero<u32>(u32, u32)>("s_absdiff_i32",
                                 [](u32 a, u32 b) {
                                   const u32 difference = a - b;
                                   return difference >> 31 ? 0 - difference : difference;
                                 }),
    salu<NonZero<u32>(i32)>(
        "s_abs_i32", [](i32 a) { return a < 0 ? 0 - static_cast<u32>(a) : static_cast<u32>(a); }),

    salu<NonZero<u32>(u32, u32)>("s_and_b32", [](u32 a, u32 b) { return a & b; }),
    salu<NonZero<u64>(u64, u64)>("s_and_b64", [](u64 a, u64 b) { return a & b; }),
    salu<NonZero<u32>(u32, u32)>("s_or_b32", [](u32 a, u32 b) { return a | b; }),
    salu<NonZero<u64>(u64, u64)>("s_or_b64", [](u64 a, u64 b) { return a | b; }),
    salu<NonZero<u32>(u32, u32)>("s_xor_b32", [](u32 a, u32 b) { return a ^ b; }),
    salu<NonZero<u64>(u64, u64)>("s_xor_b64", [](u64 a, u64 b) { return a ^ b; }),
    salu<NonZero<u32>(u32, u32)>("s_andn2_b32", [](u32 a, u32 b) { return a & ~b; }),
    salu<NonZero<u64>(u64, u64)>("s_andn2_b64", [](u64 a, u64 b) { return a & ~b; }),
    salu<NonZero<u32>(u32, u32)>("s_orn2_b32", [](u32 a, u32 b) { return a | ~b; }),
    salu<NonZero<u64>(u64, u64)>("s_orn2_b64", [](u64 a, u64 b) { return a | ~b; }),
    salu<NonZero<u32>(u32, u32)>("s_nand_b32", [](u32 a, u32 b) { return ~(a & b); }),
    salu<NonZero<u64>(u64, u64)>("s_nand_b64", [](u64 a, u64 b) { return ~(a & b); }),
    salu<NonZero<u32>(u32, u32)>("s_nor_b32", [](u32 a, u32 b) { return ~(a | b); }),
    salu<NonZero<u64>(u64, u64)>("s_nor_b64", [](u64 a, u64 b) { return ~(a | b); }),
    salu<NonZero<u32>(u32, u32)>("s_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); }),
    salu<NonZero<u64>(u64, u64)>("s_xnor_b64", [](u64 a, u64 b) { return ~(a ^ b); }),
    salu<NonZero<u32>(u32)>("s_not_b32", [](u32 a) { return ~a; }),
    salu<NonZero<u64>(u64)>("s_not_b64", [](u64 a) { return ~a; }),
    salu<u32(SccIn, u32, u32)>("s_cselect_b32", [](bool scc, u32 a, u32 b) { return scc ? a : b; }),
    salu<u64(SccIn, u64, u64)>("s_cselect_b64", [](bool scc, u64 a, u64 b) { return scc ? a : b; }),

    salu<NonZero<u32>(u32, u32)>("s_lshl_b32", [](u32 a, u32 n) { return a << (n & 31); }),
    salu<NonZero<u64>(u64, u32)>("s_lshl_b64", [](u64 a, u32 n) { return a << (n & 63); }),
    salu<NonZero<u32>(u32, u32)>("s_lshr_b32", [](u32 a, u32 n) { return a >> (n & 31); }),
    salu<NonZero<u64>(u64, u32)>("s_lshr_b64", [](u64 a, u32 n) { return a >> (n & 63); }),
    salu<NonZero<i32>(i32, u32)>("s_ashr_i32", [](i32 a, u32 n) { return a >> (n & 31); }),
    salu<NonZero<i64>(i64, u32)>("s_ashr_i64", [](i64 a, u32 n) { return a >> (n & 63); }),
    salu<NonZero<u32>(u32, u32)>("s_bfe_u32",
                                 [](u32 a, u32 c) { return extract_field<u32>(a, c, 31); }),
    salu<NonZero<i32>(i32, u32)>("s_bfe_i32",
                                 [](i32 a, u32 c) { return extract_field<i32>(a, c, 31); }),
    salu<NonZero<u64>(u64, u32)>("s_bfe_u64",
                                 [](u64 a, u32 c) { return extract_field<u64>(a, c, 63); }),
    salu<NonZero<i64>(i64, u32)>("s_bfe_i64",
                                 [](i64 a, u32 c) { return extract_field<i64>(a, c, 63); }),
    salu<u32(u32, u32)>("s_bfm_b32",
                        [](u32 width, u32 offset) { return field_mask<u32>(width, offset); }),
    salu<u64(u32, u32)>("s_bfm_b64",
                        [](u32 width, u32 offset) { return field_mask<u64>(width, offset); }),
    salu<u32(u32, u32)>("s_pack_ll_b32_b16", [](u32 a, u32 b) { return (a & 0xffff) | b << 16; }),
    salu<u32(u32, u32)>("s_pack_lh_b32_b16",
                        [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }),
    salu<u32(u32, u32)>("s_pack_hh_b32_b16",
                        [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000); }),

    salu<u32(u32)>("s_brev_b32", [](u32 a) { return reverse(a); }),
    salu<u64(u64)>("s_brev_b64", [](u64 a) { return reverse(a); }),
    salu<NonZero<i32>(u32)>("s_bcnt0_i32_b32", [](u32 a) { return std::popcount(~a); }),
    salu<NonZero<i32>(u64)>("s_bcnt0_i32_b64", [](u64 a) { return std::popcount(~a); }),
    salu<NonZero<i32>(u32)>("s_bcnt1_i32_b32", [](u32 a) { return std::popcount(a); }),
    salu<NonZero<i32>(u64)>("s_bcnt1_i32_b64", [](u64 a) { return std::popcount(a); }),
    salu<i32(u32)>("s_ff0_i32_b32", [](u32 a) { return first_set(~a); }),
    salu<i32(u64)>("s_ff0_i32_b64", [](u64 a) { return first_set(~a); }),
    salu<i32(u32)>("s_ff1_i32_b32", [](u32 a) { return first_set(a); }),
    salu<i32(u64)>("s_ff1_i32_b64", [](u64 a) { return first_set(a); }),
    salu<i32(u32)>("s_flbit_i32_b32", [](u32 a) { return leading_zeros(a); }),
    salu<i32(u64)>("s_flbit_i32_b64", [](u64 a) { return leading_zeros(a); }),
    salu<i32(i32)>("s_flbit_i32", [](i32 a) { return leading_signs(a); }),
    salu<i32(i64)>("s_flbit_i32_i64", [](i64 a) { return leading_signs(a); }),
    salu<i32(u32)>("s_sext_i32_i8", [](u32 a) { return static_cast<i32>(static_cast<int8_t>(a)); }),
    salu<i32(u32)>("s_sext_i32_i16",
                   [](u32 a) { return static_cast<i32>(static_cast<int16_t>(a)); }),
    salu<u32(u32, OldDst<u32>)>("s_bitset0_b32",
                                [](u32 n, u32 old) { return old & ~(1u << (n & 31)); }),
    salu<u32(u32, OldDst<u32>)>("s_bitset1_b32",
                                [](u32 n, u32 old) { return old | 1u << (n & 31); }),
    salu<u64(u32, OldDst<u64>)>("s_bitset0_b64",
                                [](u32 n, u64 old) { return old & ~(u64{1} << (n & 63)); }),
    salu<u64(u32, OldDst<u64>)>("s_bitset1_b64",
                                [](u32 n, u64 old) { return old | u64{1} << (n & 63); }),
};

}  // namespace

Rows salu_rows() { return kRows; }

}  // namespace fasim
