#include "exec/integer.h"
#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kSaturates = OpcodeRow::kSaturates;

u32x16 multiply_high(u32x16 a, u32x16 b) {
  const u64x16 product = __builtin_convertvector(a, u64x16) * __builtin_convertvector(b, u64x16);
  return __builtin_convertvector(product >> 32, u32x16);
}
i32x16 multiply_high(i32x16 a, i32x16 b) {
  const i64x16 product = __builtin_convertvector(a, i64x16) * __builtin_convertvector(b, i64x16);
  return __builtin_convertvector(product >> 32, i32x16);
}
u32x16 low24(u32x16 v) { return v & 0xffffff; }
i32x16 low24(i32x16 v) { return v << 8 >> 8; }

// `width` bits of `v` from bit `offset` up; fields use the low five bits of their operands.
template <class V>
V extract_field(V v, V offset, V width) {
  offset &= 31;
  width &= 31;
  const V shifted = v >> offset;
  const V top = 32 - width;
  // A field that passes bit 31 ends there: the shift pair then only replicates what is left.
  const V field = offset + width < 32 ? shifted << (top & 31) >> (top & 31) : shifted;
  return width == 0 ? V(0) : field;
}

// Sums of adjacent bit groups; clang turns this into vpopcntd where the host has it.
u32x16 population(u32x16 v) {
  v -= v >> 1 & 0x55555555;
  v = (v & 0x33333333) + (v >> 2 & 0x33333333);
  v = (v + (v >> 4)) & 0x0f0f0f0f;
  return v * 0x01010101 >> 24;
}

u32x16 reverse_bits(u32x16 v) { return __builtin_elementwise_bitreverse(v); }

// Leading zeros of a non-zero value: the exponent of its conversion to double says where bit 31
// went.
u32x16 first_high_bit(u32x16 v) {
  const f64x16 d = __builtin_convertvector(v, f64x16);
  const u64x16 exponent = as<u64x16>(d) >> 52;
  const u32x16 leading = 31 - (__builtin_convertvector(exponent, u32x16) - 1023);
  return v == 0 ? u32x16(~0u) : leading;
}
// Bits equal to the sign bit that lead; ~0 for 0 and -1.
u32x16 first_opposite_bit(i32x16 v) { return first_high_bit(as<u32x16>(v < 0 ? ~v : v)); }
u32x16 first_low_bit(u32x16 v) {
  return first_high_bit(v & (0 - v)) ^ (v == 0 ? u32x16(0) : u32x16(31));
}

// Byte i of the result is chosen by byte i of `selector` from the 8 bytes high:low.
u32x16 permute_bytes(u32x16 high, u32x16 low, u32x16 selector) {
  u32x16 result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const u32x16 s = selector >> (8 * i) & 0xff;
    const u32x16 word = (s & 4) != 0 ? high : low;
    const u32x16 byte = word >> ((s & 3) * 8) & 0xff;
    // 8 to 11: sign of one of the four halves; 12: 0; above: 0xff.
    const u32x16 sign_word = (s & 2) != 0 ? high : low;
    const u32x16 sign_bit = sign_word >> ((s & 1) != 0 ? u32x16(31) : u32x16(15)) & 1;
    const u32x16 special = s < 12 ? sign_bit * 0xff : (s == 12 ? u32x16(0) : u32x16(0xff));
    result |= (s < 8 ? byte : special) << (8 * i);
  }
  return result;
}

u32x16 align(u32x16 high, u32x16 low, u32x16 shift) {
  return __builtin_convertvector(join64(low, high) >> __builtin_convertvector(shift, u64x16),
                                 u32x16);
}

u32x16 sum_of_byte_differences(u32x16 a, u32x16 b) {
  u32x16 sum = 0;
  for (uint32_t i = 0; i < 32; i += 8) {
    const u32x16 x = a >> i & 0xff, y = b >> i & 0xff;
    sum += larger(x, y) - smaller(x, y);
  }
  return sum;
}

constexpr OpcodeRow kRows[] = {
    valu<U32(U32)>("v_mov_b32", [](auto a) { return a; }),
    valu<U32(U32)>("v_not_b32", [](auto a) { return ~a; }),
    valu<U32(U32)>("v_bfrev_b32", [](auto a) { return reverse_bits(a); }),
    valu<U32(U32)>("v_ffbh_u32", [](auto a) { return first_high_bit(a); }),
    valu<U32(I32)>("v_ffbh_i32", [](auto a) { return first_opposite_bit(a); }),
    valu<U32(U32)>("v_ffbl_b32", [](auto a) { return first_low_bit(a); }),
    valu<U32(U32, U32, Mask)>("v_cndmask_b32",
                              [](auto a, auto b, auto pick_b) { return pick_b ? b : a; }),

    valu<U32(U32, U32, Saturate)>(
        "v_add_u32",
        [](auto a, auto b, bool s) { return s ? __builtin_elementwise_add_sat(a, b) : a + b; },
        kSaturates),
    valu<U32(U32, U32, Saturate)>(
        "v_sub_u32",
        [](auto a, auto b, bool s) { return s ? __builtin_elementwise_sub_sat(a, b) : a - b; },
        kSaturates),
    valu<U32(U32, U32, Saturate)>(
        "v_subrev_u32",
        [](auto a, auto b, bool s) { return s ? __builtin_elementwise_sub_sat(b, a) : b - a; },
        kSaturates),
    valu<I32(I32, I32, Saturate)>(
        "v_add_i32",
        [](auto a, auto b, bool s) {
          return s ? __builtin_elementwise_add_sat(a, b)
                   : as<i32x16>(as<u32x16>(a) + as<u32x16>(b));
        },
        kSaturates),
    valu<I32(I32, I32, Saturate)>(
        "v_sub_i32",
        [](auto a, auto b, bool s) {
          return s ? __builtin_elementwise_sub_sat(a, b)
                   : as<i32x16>(as<u32x16>(a) - as<u32x16>(b));
        },
        kSaturates),

    valu<AndMask<U32>(U32, U32)>("v_add_co_u32",
                                 [](auto a, auto b) { return WithMask<u32x16>{a + b, a + b < a}; }),
    valu<AndMask<U32>(U32, U32)>("v_sub_co_u32",
                                 [](auto a, auto b) { return WithMask<u32x16>{a - b, a < b}; }),
    valu<AndMask<U32>(U32, U32)>("v_subrev_co_u32",
                                 [](auto a, auto b) { return WithMask<u32x16>{b - a, b < a}; }),
    valu<AndMask<U32>(U32, U32, Mask)>("v_addc_co_u32",
                                       [](auto a, auto b, auto carry) {
                                         // A set mask lane is -1, so subtracting it adds the carry.
                                         const u32x16 sum = a + b, total = sum - as<u32x16>(carry);
                                         return WithMask<u32x16>{total, (sum < a) | (total < sum)};
                                       }),
    valu<AndMask<U32>(U32, U32, Mask)>("v_subb_co_u32",
                                       [](auto a, auto b, auto borrow) {
                                         return WithMask<u32x16>{a - b + as<u32x16>(borrow),
                                                                 (a < b) | ((a == b) & borrow)};
                                       }),
    valu<AndMask<U32>(U32, U32, Mask)>("v_subbrev_co_u32",
                                       [](auto a, auto b, auto borrow) {
                                         return WithMask<u32x16>{b - a + as<u32x16>(borrow),
                                                                 (b < a) | ((b == a) & borrow)};
                                       }),

    valu<U32(U32, U32)>("v_and_b32", [](auto a, auto b) { return a & b; }),
    valu<U32(U32, U32)>("v_or_b32", [](auto a, auto b) { return a | b; }),
    valu<U32(U32, U32)>("v_xor_b32", [](auto a, auto b) { return a ^ b; }),
    valu<U32(U32, U32)>("v_xnor_b32", [](auto a, auto b) { return ~(a ^ b); }),
    valu<U32(U32, U32)>("v_lshlrev_b32", [](auto n, auto v) { return v << (n & 31); }),
    valu<U32(U32, U32)>("v_lshrrev_b32", [](auto n, auto v) { return v >> (n & 31); }),
    valu<I32(I32, I32)>("v_ashrrev_i32", [](auto n, auto v) { return v >> (n & 31); }),
    valu<I32(I32, I32)>("v_min_i32", [](auto a, auto b) { return smaller(a, b); }),
    valu<I32(I32, I32)>("v_max_i32", [](auto a, auto b) { return larger(a, b); }),
    valu<U32(U32, U32)>("v_min_u32", [](auto a, auto b) { return smaller(a, b); }),
    valu<U32(U32, U32)>("v_max_u32", [](auto a, auto b) { return larger(a, b); }),
    valu<I32(I32, I32, I32)>("v_min3_i32",
                             [](auto a, auto b, auto c) { return smaller(smaller(a, b), c); }),
    valu<I32(I32, I32, I32)>("v_max3_i32",
                             [](auto a, auto b, auto c) { return larger(larger(a, b), c); }),
    valu<I32(I32, I32, I32)>("v_med3_i32", [](auto a, auto b, auto c) { return middle(a, b, c); }),
    valu<U32(U32, U32, U32)>("v_min3_u32",
                             [](auto a, auto b, auto c) { return smaller(smaller(a, b), c); }),
    valu<U32(U32, U32, U32)>("v_max3_u32",
                             [](auto a, auto b, auto c) { return larger(larger(a, b), c); }),
    valu<U32(U32, U32, U32)>("v_med3_u32", [](auto a, auto b, auto c) { return middle(a, b, c); }),

    valu<U32(U32, U32)>("v_mul_lo_u32", [](auto a, auto b) { return a * b; }),
    valu<U32(U32, U32)>("v_mul_hi_u32", [](auto a, auto b) { return multiply_high(a, b); }),
    valu<I32(I32, I32)>("v_mul_hi_i32", [](auto a, auto b) { return multiply_high(a, b); }),
    valu<U32(U32, U32)>("v_mul_u32_u24", [](auto a, auto b) { return low24(a) * low24(b); }),
    valu<U32(I32, I32)>("v_mul_i32_i24",
                        [](auto a, auto b) { return as<u32x16>(low24(a)) * as<u32x16>(low24(b)); }),
    valu<U32(U32, U32)>("v_mul_hi_u32_u24",
                        [](auto a, auto b) { return multiply_high(low24(a), low24(b)); }),
    valu<I32(I32, I32)>("v_mul_hi_i32_i24",
                        [](auto a, auto b) { return multiply_high(low24(a), low24(b)); }),
    valu<U32(U32, U32, U32)>("v_mad_u32_u24",
                             [](auto a, auto b, auto c) { return low24(a) * low24(b) + c; }),
    valu<U32(I32, I32, U32)>(
        "v_mad_i32_i24",
        [](auto a, auto b, auto c) { return as<u32x16>(low24(a)) * as<u32x16>(low24(b)) + c; }),
    valu<U32(U16, U16, U32)>("v_mad_u32_u16", [](auto a, auto b, auto c) { return a * b + c; }),
    valu<U32(I16, I16, U32)>(
        "v_mad_i32_i16", [](auto a, auto b, auto c) { return as<u32x16>(a) * as<u32x16>(b) + c; }),

    valu<U32(U32, U32, U32)>("v_add3_u32", [](auto a, auto b, auto c) { return a + b + c; }),
    valu<U32(U32, U32, U32)>("v_lshl_add_u32",
                             [](auto a, auto n, auto c) { return (a << (n & 31)) + c; }),
    valu<U32(U32, U32, U32)>("v_add_lshl_u32",
                             [](auto a, auto b, auto n) { return (a + b) << (n & 31); }),
    valu<U32(U32, U32, U32)>("v_lshl_or_b32",
                             [](auto a, auto n, auto c) { return a << (n & 31) | c; }),
    valu<U32(U32, U32, U32)>("v_and_or_b32", [](auto a, auto b, auto c) { return (a & b) | c; }),
    valu<U32(U32, U32, U32)>("v_or3_b32", [](auto a, auto b, auto c) { return a | b | c; }),
    valu<U32(U32, U32, U32)>("v_xad_u32", [](auto a, auto b, auto c) { return (a ^ b) + c; }),
    valu<U32(U32, U32, U32)>(
        "v_bfe_u32",
        [](auto v, auto offset, auto width) { return extract_field(v, offset, width); }),
    valu<I32(I32, I32, I32)>(
        "v_bfe_i32",
        [](auto v, auto offset, auto width) { return extract_field(v, offset, width); }),
    valu<U32(U32, U32, U32)>("v_bfi_b32",
                             [](auto m, auto a, auto b) { return (m & a) | (~m & b); }),
    valu<U32(U32, U32)>(
        "v_bfm_b32",
        [](auto width, auto offset) { return ((1 << (width & 31)) - 1) << (offset & 31); }),
    valu<U32(U32, U32)>("v_bcnt_u32_b32", [](auto a, auto b) { return population(a) + b; }),
    valu<U32(U32, U32, U32)>("v_alignbit_b32",
                             [](auto hi, auto lo, auto n) { return align(hi, lo, n & 31); }),
    valu<U32(U32, U32, U32)>("v_alignbyte_b32",
                             [](auto hi, auto lo, auto n) { return align(hi, lo, (n & 3) * 8); }),
    valu<U32(U32, U32, U32)>(
        "v_perm_b32", [](auto hi, auto lo, auto select) { return permute_bytes(hi, lo, select); }),
    valu<U32(U32, U32, U32)>(
        "v_sad_u8", [](auto a, auto b, auto c) { return sum_of_byte_differences(a, b) + c; }),
    valu<U32(U32, U32, U32)>(
        "v_sad_u32", [](auto a, auto b, auto c) { return larger(a, b) - smaller(a, b) + c; }),
    valu<U32(U32, U32, LaneId)>("v_mbcnt_lo_u32_b32",
                                [](auto mask, auto base, auto lane) {
                                  const u32x16 below =
                                      lane >= 32 ? u32x16(~0u) : (1 << (lane & 31)) - 1;
                                  return population(mask & below) + base;
                                }),
    valu<U32(U32, U32, LaneId)>("v_mbcnt_hi_u32_b32",
                                [](auto mask, auto base, auto lane) {
                                  const u32x16 below =
                                      lane < 32 ? u32x16(0) : (1 << (lane & 31)) - 1;
                                  return population(mask & below) + base;
                                }),
};

}  // namespace

Rows valu_int_rows() { return kRows; }

}  // namespace fasim
