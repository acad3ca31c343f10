#include "exec/float_bits.h"
#include "exec/lanes.h"
#include "exec/rows.h"

namespace fasim {
namespace {

constexpr uint16_t kMath = OpcodeRow::kFloatMath;

f64x16 saturate(f64x16 v, double low, double high) {
  const f64x16 number = v != v ? f64x16(0.0) : v;
  return number < low ? f64x16(low) : (number > high ? f64x16(high) : number);
}
// Truncating, saturating, NaN to 0. Through double, which holds both bounds exactly.
i32x16 to_i32(f64x16 v) {
  return __builtin_convertvector(saturate(v, -2147483648.0, 2147483647.0), i32x16);
}
u32x16 to_u32(f64x16 v) {
  const i64x16 wide = __builtin_convertvector(saturate(v, 0.0, 4294967295.0), i64x16);
  return __builtin_convertvector(wide, u32x16);
}
f32x16 byte_to_float(u32x16 v, uint32_t shift) {
  return __builtin_convertvector(v >> shift & 0xff, f32x16);
}

// Towards zero: RNE, then one step back where that went outwards. An overflow becomes the largest
// finite f16.
u32x16 to_half_toward_zero(f32x16 v) {
  const u32x16 nearest = float_to_half(v);
  const f32x16 back = half_to_float(nearest);
  const f32x16 size = __builtin_elementwise_abs(v), rounded = __builtin_elementwise_abs(back);
  const i32x16 outwards = rounded > size;
  return outwards ? nearest - 1 : nearest;
}

f32x16 normalised(f32x16 v, float low, float scale) {
  const f32x16 number = v != v ? f32x16(0.0f) : v;
  const f32x16 bounded = number < low ? f32x16(low) : (number > 1.0f ? f32x16(1.0f) : number);
  return __builtin_elementwise_roundeven(bounded * scale);
}
u32x16 pack_i16(f32x16 a, f32x16 b) {
  const u32x16 lo = as<u32x16>(__builtin_convertvector(a, i32x16)) & 0xffff;
  return lo | as<u32x16>(__builtin_convertvector(b, i32x16)) << 16;
}
template <class V>
V bounded(V v, V low, V high) {
  return v < low ? low : (v > high ? high : v);
}

constexpr OpcodeRow kRows[] = {
    valu<F16(F32)>(
        "v_cvt_f16_f32", [](auto a) { return a; }, kMath),
    valu<F32(F16)>(
        "v_cvt_f32_f16", [](auto a) { return a; }, kMath),
    valu<F32(I32)>("v_cvt_f32_i32", [](auto a) { return __builtin_convertvector(a, f32x16); }),
    valu<F32(U32)>("v_cvt_f32_u32", [](auto a) { return __builtin_convertvector(a, f32x16); }),
    valu<I32(F32)>(
        "v_cvt_i32_f32", [](auto a) { return to_i32(widen(a)); }, kMath),
    valu<U32(F32)>(
        "v_cvt_u32_f32", [](auto a) { return to_u32(widen(a)); }, kMath),
    valu<I32(F32)>(
        "v_cvt_rpi_i32_f32",
        [](auto a) { return to_i32(__builtin_elementwise_floor(widen(a) + 0.5)); }, kMath),
    valu<I32(F32)>(
        "v_cvt_flr_i32_f32", [](auto a) { return to_i32(__builtin_elementwise_floor(widen(a))); },
        kMath),
    valu<F32(U32)>("v_cvt_f32_ubyte0", [](auto a) { return byte_to_float(a, 0); }),
    valu<F32(U32)>("v_cvt_f32_ubyte1", [](auto a) { return byte_to_float(a, 8); }),
    valu<F32(U32)>("v_cvt_f32_ubyte2", [](auto a) { return byte_to_float(a, 16); }),
    valu<F32(U32)>("v_cvt_f32_ubyte3", [](auto a) { return byte_to_float(a, 24); }),
    valu<F32(F64)>(
        "v_cvt_f32_f64", [](auto a) { return narrow(a); }, kMath),
    valu<F64(F32)>(
        "v_cvt_f64_f32", [](auto a) { return widen(a); }, kMath),
    valu<F64(I32)>("v_cvt_f64_i32", [](auto a) { return __builtin_convertvector(a, f64x16); }),
    valu<F64(U32)>("v_cvt_f64_u32", [](auto a) { return __builtin_convertvector(a, f64x16); }),
    valu<I32(F64)>(
        "v_cvt_i32_f64", [](auto a) { return to_i32(a); }, kMath),
    valu<U32(F64)>(
        "v_cvt_u32_f64", [](auto a) { return to_u32(a); }, kMath),
    valu<F16(U16)>("v_cvt_f16_u16", [](auto a) { return __builtin_convertvector(a, f32x16); }),
    valu<F16(I16)>("v_cvt_f16_i16", [](auto a) { return __builtin_convertvector(a, f32x16); }),
    valu<U16(F16)>(
        "v_cvt_u16_f16", [](auto a) { return to_u32(saturate(widen(a), 0.0, 65535.0)); }, kMath),
    valu<I16(F16)>(
        "v_cvt_i16_f16", [](auto a) { return to_i32(saturate(widen(a), -32768.0, 32767.0)); },
        kMath),
    valu<U32(F32, F32)>(
        "v_cvt_pkrtz_f16_f32",
        [](auto a, auto b) { return to_half_toward_zero(a) | to_half_toward_zero(b) << 16; },
        kMath),
    valu<U32(F32, F32)>(
        "v_cvt_pknorm_i16_f32",
        [](auto a, auto b) {
          return pack_i16(normalised(a, -1.0f, 32767.0f), normalised(b, -1.0f, 32767.0f));
        },
        kMath),
    valu<U32(F32, F32)>(
        "v_cvt_pknorm_u16_f32",
        [](auto a, auto b) {
          return pack_i16(normalised(a, 0.0f, 65535.0f), normalised(b, 0.0f, 65535.0f));
        },
        kMath),
    valu<U32(U32, U32)>("v_cvt_pk_u16_u32",
                        [](auto a, auto b) {
                          return bounded(a, u32x16(0), u32x16(0xffff)) |
                                 bounded(b, u32x16(0), u32x16(0xffff)) << 16;
                        }),
    valu<U32(I32, I32)>("v_cvt_pk_i16_i32",
                        [](auto a, auto b) {
                          const i32x16 lo = bounded(a, i32x16(-32768), i32x16(32767)),
                                       hi = bounded(b, i32x16(-32768), i32x16(32767));
                          return (as<u32x16>(lo) & 0xffff) | as<u32x16>(hi) << 16;
                        }),
    valu<U32(F32, U32, U32)>(
        "v_cvt_pk_u8_f32",
        [](auto v, auto byte, auto old) {
          const u32x16 shift = (byte & 3) * 8;
          const u32x16 value =
              to_u32(saturate(widen(__builtin_elementwise_roundeven(v)), 0.0, 255.0));
          return (old & ~(0xff << shift)) | value << shift;
        },
        kMath),
};

}  // namespace

Rows valu_convert_rows() { return kRows; }

}  // namespace fasim
