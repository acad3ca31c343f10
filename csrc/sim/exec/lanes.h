// Lane arithmetic: an opcode's function over 64 lanes, written as a lambda over 16-lane vectors.
//
// Four passes of 16, like the hardware's SIMD16. A lambda sees only values; register rows, masks
// and the 16-bit packing are this file's matter, modifiers and EXEC are operands.cpp's.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "exec/operands.h"
#include "isa/opcodes.h"

// A product and a sum must round twice (v_mad_f32, v_mul_f32 before v_add_f32).
#pragma clang fp contract(off)
// Without AVX-512, clang warns that 64-byte vectors pass by memory instead of in registers. They
// only pass between functions of this one library, all compiled alike.
#pragma clang diagnostic ignored "-Wpsabi"

namespace fasim {

using u32x16 = uint32_t __attribute__((ext_vector_type(16)));
using i32x16 = int32_t __attribute__((ext_vector_type(16)));
using f32x16 = float __attribute__((ext_vector_type(16)));
using f32x32 = float __attribute__((ext_vector_type(32)));
using i32x32 = int32_t __attribute__((ext_vector_type(32)));
using u32x32 = uint32_t __attribute__((ext_vector_type(32)));
using u64x16 = uint64_t __attribute__((ext_vector_type(16)));
using i64x16 = int64_t __attribute__((ext_vector_type(16)));
using f64x16 = double __attribute__((ext_vector_type(16)));
using u16x16 = uint16_t __attribute__((ext_vector_type(16)));
using u16x32 = uint16_t __attribute__((ext_vector_type(32)));
using i16x32 = int16_t __attribute__((ext_vector_type(32)));
using f16x16 = _Float16 __attribute__((ext_vector_type(16)));
using f16x32 = _Float16 __attribute__((ext_vector_type(32)));
using bool16 = bool __attribute__((ext_vector_type(16)));

inline constexpr int kPassLanes = 16;
inline constexpr int kPasses = 4;
inline constexpr int kRowWords = 64;  // distance of a 64-bit operand's high row from its low row

template <class To, class From>
inline To as(From value) {
  return __builtin_bit_cast(To, value);
}
template <class Vector>
inline Vector load_vector(const void* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class Vector>
inline void store_vector(void* p, Vector v) {
  std::memcpy(p, &v, sizeof v);
}

// All ones where bit i of `bits` is set. (A vector's ?: looks at the sign, so ones would not do.)
inline i32x16 lanes_of(uint16_t bits) { return -__builtin_convertvector(as<bool16>(bits), i32x16); }
template <class IntVector>
inline uint16_t bits_of(IntVector mask) {
  return as<uint16_t>(__builtin_convertvector(mask, bool16));
}

inline f32x16 half_to_float(u32x16 row) {
  return __builtin_convertvector(as<f16x16>(__builtin_convertvector(row, u16x16)), f32x16);
}
inline u32x16 float_to_half(f32x16 v) {
  return __builtin_convertvector(as<u16x16>(__builtin_convertvector(v, f16x16)), u32x16);
}
template <class V>
inline auto is_signalling_half(V bits) {
  return ((bits & 0x7fff) > 0x7c00) & ((bits & 0x0200) == 0);
}
inline u64x16 join64(u32x16 lo, u32x16 hi) {
  return __builtin_convertvector(lo, u64x16) | (__builtin_convertvector(hi, u64x16) << 32);
}

// Operand types of a lambda's signature. `Value` is what the lambda sees for 16 lanes.
template <Kind K, class V>
struct Row32 {
  static constexpr Kind kKind = K;
  using Value = V;
  static V load(const uint32_t* p) { return load_vector<V>(p); }
  static void store(uint32_t* p, V v) { store_vector(p, v); }
};
struct U32 : Row32<Kind::b32, u32x16> {};
struct I32 : Row32<Kind::b32, i32x16> {};
struct F32 : Row32<Kind::f32, f32x16> {};
struct V2U16 : Row32<Kind::pk16, u16x32> {};
struct V2I16 : Row32<Kind::pk16, i16x32> {};
// A pair of f16 left packed, for dot products.
struct H2 : Row32<Kind::pk_f16, f16x32> {};

struct U16 {
  static constexpr Kind kKind = Kind::b16;
  using Value = u32x16;
  static Value load(const uint32_t* p) { return load_vector<u32x16>(p) & 0xffff; }
  static void store(uint32_t* p, Value v) { store_vector(p, v & 0xffff); }
};
struct I16 {
  static constexpr Kind kKind = Kind::b16;
  using Value = i32x16;
  static Value load(const uint32_t* p) { return load_vector<i32x16>(p) << 16 >> 16; }
  static void store(uint32_t* p, Value v) { store_vector(p, v & 0xffff); }
};
// f16 in the low half, computed in f32; storing rounds once (RNE) and clears the high half.
struct F16 {
  static constexpr Kind kKind = Kind::f16;
  using Value = f32x16;
  static Value load(const uint32_t* p) { return half_to_float(load_vector<u32x16>(p)); }
  static void store(uint32_t* p, Value v) { store_vector(p, float_to_half(v)); }
};
// For opcodes that tell signalling NaNs from quiet ones, which the conversion to f32 does not keep.
struct F16Signalling : F16 {
  static Value load(const uint32_t* p) {
    const u32x16 row = load_vector<u32x16>(p);
    const u32x16 wide = as<u32x16>(half_to_float(row));
    return as<f32x16>(is_signalling_half(row) ? wide & ~0x00400000u : wide);
  }
};
// Both halves of 16 lanes as 32 floats, in memory order.
struct V2F16 {
  static constexpr Kind kKind = Kind::pk_f16;
  using Value = f32x32;
  static Value load(const uint32_t* p) {
    return __builtin_convertvector(load_vector<f16x32>(p), f32x32);
  }
  static void store(uint32_t* p, Value v) { store_vector(p, __builtin_convertvector(v, f16x32)); }
};
struct V2F16Signalling : V2F16 {
  static Value load(const uint32_t* p) {
    const u16x32 row = load_vector<u16x32>(p);
    const u32x32 wide = as<u32x32>(__builtin_convertvector(as<f16x32>(row), f32x32));
    return as<f32x32>(
        __builtin_convertvector(is_signalling_half(row), i32x32) != 0 ? wide & ~0x00400000u : wide);
  }
};
template <Kind K, class V>
struct Row64 {
  static constexpr Kind kKind = K;
  using Value = V;
  static V load(const uint32_t* p) {
    return as<V>(join64(load_vector<u32x16>(p), load_vector<u32x16>(p + kRowWords)));
  }
  static void store(uint32_t* p, V v) {
    const u64x16 bits = as<u64x16>(v);
    store_vector(p, __builtin_convertvector(bits, u32x16));
    store_vector(p + kRowWords, __builtin_convertvector(bits >> 32, u32x16));
  }
};
struct U64 : Row64<Kind::b64, u64x16> {};
struct I64 : Row64<Kind::b64, i64x16> {};
struct F64 : Row64<Kind::f64, f64x16> {};

// A raw-bits source that takes the modifiers of a float.
struct F32Bits : U32 {
  static constexpr Kind kKind = Kind::f32;
};
struct F16Bits : U16 {
  static constexpr Kind kKind = Kind::f16;
};
struct F64Bits : U64 {
  static constexpr Kind kKind = Kind::f64;
};

// Destination halves that keep the other half of the register.
template <class T, Kind K>
struct Keeping : T {
  static constexpr Kind kKind = K;
};
using U16Half = Keeping<U16, Kind::b16_half>;
using I16Half = Keeping<I16, Kind::b16_half>;
using F16Half = Keeping<F16, Kind::f16_half>;
using F16Low = Keeping<F16, Kind::f16_low>;
using F16High = Keeping<F16, Kind::f16_high>;
// fma_mix source: f32, or either half as f16; operands.cpp makes it f32.
struct Mix : F32 {
  static constexpr Kind kKind = Kind::mix;
};

// Pseudo sources.
template <class T>
struct Acc : T {};   // the destination's old value
struct Mask {};      // one bit per lane, from an explicit SGPR pair
struct VccIn {};     // one bit per lane, from VCC without being written in the text
struct LaneId {};    // 0 to 63
struct Saturate {};  // the clamp modifier, as bool

// A value with a lane mask (carry out, div_scale).
template <class Value>
struct WithMask {
  Value value;
  i32x16 mask;
};
template <class T>
struct AndMask {};  // result: T and a mask

namespace lanes_detail {

template <class T>
struct Source {
  static constexpr bool kRow = true;
  static constexpr Kind kKind = T::kKind;
  static auto load(const LaneArgs& a, int slot, int pass) {
    return T::load(a.src[slot] + pass * kPassLanes);
  }
};
template <class T>
struct MaskSource {
  static constexpr bool kRow = false;
  static auto load(const LaneArgs& a, int, int pass) {
    return lanes_of(static_cast<uint16_t>(a.mask_in >> (pass * kPassLanes)));
  }
};
template <>
struct Source<Mask> : MaskSource<Mask> {
  static constexpr Kind kKind = Kind::mask;
};
template <>
struct Source<VccIn> : MaskSource<VccIn> {
  static constexpr Kind kKind = Kind::vcc_in;
};
template <>
struct Source<LaneId> {
  static constexpr bool kRow = false;
  static constexpr Kind kKind = Kind::none;
  static u32x16 load(const LaneArgs&, int, int pass) {
    const u32x16 first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return first + static_cast<uint32_t>(pass * kPassLanes);
  }
};
template <>
struct Source<Saturate> {
  static constexpr bool kRow = false;
  static constexpr Kind kKind = Kind::none;
  static bool load(const LaneArgs& a, int, int) { return a.saturate; }
};
template <class T>
inline constexpr bool is_acc = false;
template <class T>
inline constexpr bool is_acc<Acc<T>> = true;

template <class R>
struct Result {
  static constexpr Kind kDst = R::kKind;
  static constexpr bool kMask = false;
  static void store(LaneArgs& a, int pass, typename R::Value v) {
    R::store(a.dst + pass * kPassLanes, v);
  }
};
template <class R>
struct Result<AndMask<R>> {
  static constexpr Kind kDst = R::kKind;
  static constexpr bool kMask = true;
  static void store(LaneArgs& a, int pass, WithMask<typename R::Value> v) {
    R::store(a.dst + pass * kPassLanes, v.value);
    a.mask_out |= static_cast<uint64_t>(bits_of(v.mask)) << (pass * kPassLanes);
  }
};
template <>
struct Result<Mask> {
  static constexpr Kind kDst = Kind::none;
  static constexpr bool kMask = true;
  template <class IntVector>
  static void store(LaneArgs& a, int pass, IntVector v) {
    a.mask_out |= static_cast<uint64_t>(bits_of(v)) << (pass * kPassLanes);
  }
};

template <class Sig>
struct Signature;
template <class R, class... S>
struct Signature<R(S...)> {
  // Slot of source i among the rows in LaneArgs::src.
  static constexpr int slot(size_t i) {
    constexpr bool rows[] = {Source<S>::kRow..., false};
    int n = 0;
    for (size_t k = 0; k < i; ++k) n += rows[k];
    return n;
  }
  template <class Fn, size_t... I>
  static void pass(LaneArgs& a, int p, std::index_sequence<I...>) {
    Result<R>::store(a, p, Fn{}(Source<S>::load(a, slot(I), p)...));
  }
  template <class Fn>
  static void run(LaneArgs& a) {
    for (int p = 0; p < kPasses; ++p) pass<Fn>(a, p, std::index_sequence_for<S...>{});
  }
  static constexpr OpcodeRow row(std::string_view name, LaneFunction lanes, uint16_t flags) {
    OpcodeRow r;
    r.name = name;
    r.run = &run_valu;
    r.lanes = lanes;
    r.cls = InstClass::valu;
    r.flags = flags;
    r.dst = Result<R>::kDst;
    if (Result<R>::kMask) r.flags |= OpcodeRow::kMaskDst;
    constexpr Kind kinds[] = {Source<S>::kKind..., Kind::none};
    constexpr bool accumulates[] = {is_acc<S>..., false};
    size_t n = 0;
    for (size_t i = 0; i < sizeof...(S); ++i) {
      if (kinds[i] == Kind::none) continue;
      if (accumulates[i]) r.flags |= OpcodeRow::kReadsDst;
      r.src[n++] = kinds[i];
    }
    return r;
  }
};

}  // namespace lanes_detail

// One VALU opcode: `valu<F32(F32, F32)>("v_add_f32", [](f32x16 a, f32x16 b) { return a + b; })`.
template <class Sig, class Fn>
constexpr OpcodeRow valu(std::string_view name, Fn, uint16_t flags = 0) {
  using S = lanes_detail::Signature<Sig>;
  return S::row(name, &S::template run<Fn>, flags);
}

}  // namespace fasim
