#include "exec/integer.h"
#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kSaturates = OpcodeRow::kSaturates;

template <class V>
V saturate16(V v, bool saturate, int low, int high) {
  return saturate ? larger(smaller(v, V(high)), V(low)) : v;
}

constexpr OpcodeRow kRows[] = {
    valu<U16(U16, U16, Saturate)>(
        "v_add_u16",
        [](auto a, auto b, bool s) { return s ? smaller(a + b, u32x16(0xffff)) : a + b; },
        kSaturates),
    valu<U16(U16, U16, Saturate)>(
        "v_sub_u16",
        [](auto a, auto b, bool s) { return s ? __builtin_elementwise_sub_sat(a, b) : a - b; },
        kSaturates),
    valu<U16(U16, U16, Saturate)>(
        "v_subrev_u16",
        [](auto a, auto b, bool s) { return s ? __builtin_elementwise_sub_sat(b, a) : b - a; },
        kSaturates),
    valu<I16Half(I16, I16, Saturate)>(
        "v_add_i16", [](auto a, auto b, bool s) { return saturate16(a + b, s, -32768, 32767); },
        kSaturates),
    valu<I16Half(I16, I16, Saturate)>(
        "v_sub_i16", [](auto a, auto b, bool s) { return saturate16(a - b, s, -32768, 32767); },
        kSaturates),
    valu<U16(U16, U16)>("v_mul_lo_u16", [](auto a, auto b) { return a * b; }),
    valu<U16(U16, U16)>("v_lshlrev_b16", [](auto n, auto v) { return v << (n & 15); }),
    valu<U16(U16, U16)>("v_lshrrev_b16", [](auto n, auto v) { return v >> (n & 15); }),
    valu<I16(I16, I16)>("v_ashrrev_i16", [](auto n, auto v) { return v >> (n & 15); }),
    valu<U16(U16, U16)>("v_min_u16", [](auto a, auto b) { return smaller(a, b); }),
    valu<U16(U16, U16)>("v_max_u16", [](auto a, auto b) { return larger(a, b); }),
    valu<I16(I16, I16)>("v_min_i16", [](auto a, auto b) { return smaller(a, b); }),
    valu<I16(I16, I16)>("v_max_i16", [](auto a, auto b) { return larger(a, b); }),
    valu<U16Half(U16, U16, U16)>("v_min3_u16",
                                 [](auto a, auto b, auto c) { return smaller(smaller(a, b), c); }),
    valu<U16Half(U16, U16, U16)>("v_max3_u16",
                                 [](auto a, auto b, auto c) { return larger(larger(a, b), c); }),
    valu<U16Half(U16, U16, U16)>("v_med3_u16",
                                 [](auto a, auto b, auto c) { return middle(a, b, c); }),
    valu<I16Half(I16, I16, I16)>("v_min3_i16",
                                 [](auto a, auto b, auto c) { return smaller(smaller(a, b), c); }),
    valu<I16Half(I16, I16, I16)>("v_max3_i16",
                                 [](auto a, auto b, auto c) { return larger(larger(a, b), c); }),
    valu<I16Half(I16, I16, I16)>("v_med3_i16",
                                 [](auto a, auto b, auto c) { return middle(a, b, c); }),
    valu<U16(U16, U16, U16)>("v_mad_legacy_u16", [](auto a, auto b, auto c) { return a * b + c; }),
    valu<I16(I16, I16, I16)>("v_mad_legacy_i16", [](auto a, auto b, auto c) { return a * b + c; }),
    valu<U16Half(U16, U16, U16, Saturate)>(
        "v_mad_u16",
        [](auto a, auto b, auto c,
           bool s) { return s ? smaller(a * b + c, u32x16(0xffff)) : a * b + c; },
        kSaturates),
    valu<I16Half(I16, I16, I16, Saturate)>(
        "v_mad_i16",
        [](auto a, auto b, auto c, bool s) { return saturate16(a * b + c, s, -32768, 32767); },
        kSaturates),
};

}  // namespace

Rows valu_int16_rows() { return kRows; }

}  // namespace fasim
