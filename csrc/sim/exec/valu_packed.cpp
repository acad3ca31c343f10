// VOP3P: packed 16-bit and dot-product opcodes.
#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/min_max.h"
#include "exec/round_odd.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kMath = OpcodeRow::kFloatMath;
constexpr uint16_t kSaturates = OpcodeRow::kSaturates;

// fma(a1, b1, fma(a0, b0, c)) in f32. The product of two f16 is exact in f32, so multiply and add
// are the fused form; converting pairs in place and splitting the products needs 4 conversions and
// 2 shuffles where splitting first needs 4 of each. Products are 0 or at least 2^-48, so without a
// denormal c no denormal result can arise.
f32x16 dot2(f16x32 a, f16x32 b, f32x16 c) {
  const f32x32 products = __builtin_convertvector(a, f32x32) * __builtin_convertvector(b, f32x32);
  const f32x16 first = __builtin_shufflevector(products, products, 0, 2, 4, 6, 8, 10, 12, 14, 16,
                                               18, 20, 22, 24, 26, 28, 30);
  const f32x16 second = __builtin_shufflevector(products, products, 1, 3, 5, 7, 9, 11, 13, 15, 17,
                                                19, 21, 23, 25, 27, 29, 31);
  return first + flush_denormals(c) + second;
}

template <class V>
V field(V v, int index, int width) {
  return v << (32 - width - index * width) >> (32 - width);
}

// Sum of products of `width`-bit fields, exact in 64 bits before the optional saturation.
template <class V, class Wide>
V dot(V a, V b, V c, int width, bool saturate) {
  V sum = 0;
  for (int i = 0; i < 32 / width; ++i) sum += field(a, i, width) * field(b, i, width);
  if (!saturate) return as<V>(as<u32x16>(sum) + as<u32x16>(c));
  // The products sum to at most 4 * 2^16 for 8 bits and 2^33 for 16: only 16 bits needs care.
  Wide wide = __builtin_convertvector(c, Wide);
  for (int i = 0; i < 32 / width; ++i) {
    wide += __builtin_convertvector(field(a, i, width), Wide) *
            __builtin_convertvector(field(b, i, width), Wide);
  }
  const bool is_signed = V(-1)[0] < V(0)[0];
  const Wide low = is_signed ? Wide(0) - 0x80000000ll : Wide(0);
  const Wide high = is_signed ? Wide(0x7fffffff) : Wide(0xffffffff);
  wide = wide < low ? low : (wide > high ? high : wide);
  return __builtin_convertvector(wide, V);
}
i32x16 dot_signed(i32x16 a, i32x16 b, i32x16 c, int width, bool s) {
  return dot<i32x16, i64x16>(a, b, c, width, s);
}
u32x16 dot_unsigned(u32x16 a, u32x16 b, u32x16 c, int width, bool s) {
  return dot<u32x16, u64x16>(a, b, c, width, s);
}

template <class V>
V add(V a, V b, bool saturate) {
  return saturate ? __builtin_elementwise_add_sat(a, b) : as<V>(as<u16x32>(a) + as<u16x32>(b));
}
template <class V>
V sub(V a, V b, bool saturate) {
  return saturate ? __builtin_elementwise_sub_sat(a, b) : as<V>(as<u16x32>(a) - as<u16x32>(b));
}
// Low 16 bits of the product, for either signedness.
u16x32 multiply_low(u16x32 a, u16x32 b) { return a * b; }

constexpr OpcodeRow kRows[] = {
    valu<F32(H2, H2, F32)>("v_dot2_f32_f16", [](auto a, auto b, auto c) { return dot2(a, b, c); }),
    valu<I32(I32, I32, I32, Saturate)>(
        "v_dot2_i32_i16", [](auto a, auto b, auto c, bool s) { return dot_signed(a, b, c, 16, s); },
        kSaturates),
    valu<U32(U32, U32, U32, Saturate)>(
        "v_dot2_u32_u16",
        [](auto a, auto b, auto c, bool s) { return dot_unsigned(a, b, c, 16, s); }, kSaturates),
    valu<I32(I32, I32, I32, Saturate)>(
        "v_dot4_i32_i8", [](auto a, auto b, auto c, bool s) { return dot_signed(a, b, c, 8, s); },
        kSaturates),
    valu<U32(U32, U32, U32, Saturate)>(
        "v_dot4_u32_u8", [](auto a, auto b, auto c, bool s) { return dot_unsigned(a, b, c, 8, s); },
        kSaturates),
    valu<I32(I32, I32, I32, Saturate)>(
        "v_dot8_i32_i4", [](auto a, auto b, auto c, bool s) { return dot_signed(a, b, c, 4, s); },
        kSaturates),
    valu<U32(U32, U32, U32, Saturate)>(
        "v_dot8_u32_u4", [](auto a, auto b, auto c, bool s) { return dot_unsigned(a, b, c, 4, s); },
        kSaturates),

    valu<V2F16(V2F16, V2F16)>(
        "v_pk_add_f16", [](auto a, auto b) { return a + b; }, kMath),
    valu<V2F16(V2F16, V2F16)>(
        "v_pk_mul_f16", [](auto a, auto b) { return a * b; }, kMath),
    valu<V2F16(V2F16, V2F16, V2F16)>(
        "v_pk_fma_f16", [](auto a, auto b, auto c) { return fma_half(a, b, c); }, kMath),
    valu<V2F16(V2F16Signalling, V2F16Signalling)>(
        "v_pk_min_f16", [](auto a, auto b) { return minimum(a, b); }, kMath),
    valu<V2F16(V2F16Signalling, V2F16Signalling)>(
        "v_pk_max_f16", [](auto a, auto b) { return maximum(a, b); }, kMath),

    valu<V2U16(V2U16, V2U16, Saturate)>(
        "v_pk_add_u16", [](auto a, auto b, bool s) { return add(a, b, s); }, kSaturates),
    valu<V2U16(V2U16, V2U16, Saturate)>(
        "v_pk_sub_u16", [](auto a, auto b, bool s) { return sub(a, b, s); }, kSaturates),
    valu<V2I16(V2I16, V2I16, Saturate)>(
        "v_pk_add_i16", [](auto a, auto b, bool s) { return add(a, b, s); }, kSaturates),
    valu<V2I16(V2I16, V2I16, Saturate)>(
        "v_pk_sub_i16", [](auto a, auto b, bool s) { return sub(a, b, s); }, kSaturates),
    valu<V2U16(V2U16, V2U16)>("v_pk_mul_lo_u16", [](auto a, auto b) { return multiply_low(a, b); }),
    valu<V2U16(V2U16, V2U16, V2U16)>("v_pk_mad_u16",
                                     [](auto a, auto b, auto c) { return multiply_low(a, b) + c; }),
    valu<V2U16(V2U16, V2U16, V2U16)>("v_pk_mad_i16",
                                     [](auto a, auto b, auto c) { return multiply_low(a, b) + c; }),
    valu<V2U16(V2U16, V2U16)>("v_pk_lshlrev_b16", [](auto n, auto v) { return v << (n & 15); }),
    valu<V2U16(V2U16, V2U16)>("v_pk_lshrrev_b16", [](auto n, auto v) { return v >> (n & 15); }),
    valu<V2I16(V2I16, V2I16)>("v_pk_ashrrev_i16", [](auto n, auto v) { return v >> (n & 15); }),
    valu<V2U16(V2U16, V2U16)>("v_pk_min_u16",
                              [](auto a, auto b) { return __builtin_elementwise_min(a, b); }),
    valu<V2U16(V2U16, V2U16)>("v_pk_max_u16",
                              [](auto a, auto b) { return __builtin_elementwise_max(a, b); }),
    valu<V2I16(V2I16, V2I16)>("v_pk_min_i16",
                              [](auto a, auto b) { return __builtin_elementwise_min(a, b); }),
    valu<V2I16(V2I16, V2I16)>("v_pk_max_i16",
                              [](auto a, auto b) { return __builtin_elementwise_max(a, b); }),
};

}  // namespace

Rows valu_packed_rows() { return kRows; }

}  // namespace fasim
