#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

u64x16 shift64(u32x16 n) { return __builtin_convertvector(n & 63, u64x16); }

WithMask<u64x16> multiply_add(u64x16 product, u64x16 c) {
  return {product + c, __builtin_convertvector(product + c < product, i32x16)};
}
// The flag is the sign overflow of the 64-bit sum.
WithMask<i64x16> multiply_add(i64x16 product, i64x16 c) {
  const i64x16 sum = as<i64x16>(as<u64x16>(product) + as<u64x16>(c));
  const i64x16 overflow = (product ^ sum) & (c ^ sum);
  return {sum, __builtin_convertvector(overflow < 0, i32x16)};
}

constexpr OpcodeRow kRows[] = {
    valu<U64(U32, U64)>("v_lshlrev_b64", [](auto n, auto v) { return v << shift64(n); }),
    valu<U64(U32, U64)>("v_lshrrev_b64", [](auto n, auto v) { return v >> shift64(n); }),
    valu<I64(U32, I64)>("v_ashrrev_i64",
                        [](auto n, auto v) { return v >> as<i64x16>(shift64(n)); }),
    valu<AndMask<U64>(U32, U32, U64)>("v_mad_u64_u32",
                                      [](auto a, auto b, auto c) {
                                        return multiply_add(__builtin_convertvector(a, u64x16) *
                                                                __builtin_convertvector(b, u64x16),
                                                            c);
                                      }),
    valu<AndMask<I64>(I32, I32, I64)>("v_mad_i64_i32",
                                      [](auto a, auto b, auto c) {
                                        return multiply_add(__builtin_convertvector(a, i64x16) *
                                                                __builtin_convertvector(b, i64x16),
                                                            c);
                                      }),
};

}  // namespace

Rows valu_int64_rows() { return kRows; }

}  // namespace fasim
