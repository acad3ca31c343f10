// What a generated program needs, for the card and for the host.
//
// The same text is compiled twice. A function is a sequence of phases, each a pure function of one
// lane's State, with exchanges between lanes in between. The card runs 64 lanes in lockstep; the
// host runs each phase for all lanes of a group before the next exchange, over arrays of 64.
#pragma once

using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using i16 = short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;
using f16 = _Float16;
using f32 = float;
using f64 = double;
using f16x2 = f16 __attribute__((ext_vector_type(2)));
using u16x2 = u16 __attribute__((ext_vector_type(2)));
using i16x2 = i16 __attribute__((ext_vector_type(2)));

constexpr u32 kLanes = 64;
constexpr u32 kTable = 256;

struct State {
  u64 l[3];
  f64 d[2];
  u32 i[6];
  f32 f[4];
  f16 h[4];
};
static_assert(sizeof(State) == 88);

struct Context {
  const u32* table;  // kTable random words, the same for all lanes
  u32* slot;         // this lane's own word
  u32 lane;
};

#if defined(__AMDGCN__)
#define LANE_FUNCTION static inline __attribute__((device, always_inline))
#define CALLED_FUNCTION static __attribute__((device, noinline))
#else
#define LANE_FUNCTION static inline
#define CALLED_FUNCTION static inline
#endif

// clang 19 knows too much about some constants on the card: it narrows an unsigned division by
// counting sign bits, which is wrong for a numerator known to start with ones, and it turns 0 - x
// into -x, a half of -0 into +0, a sign extension before a half's operation into a negation, and it
// builds v_dot4 from the wrong bytes of a shifted value. The empty asm hides what is known.
#if defined(__AMDGCN__)
#define HIDE(x) asm("" : "+v"(x))
#else
#define HIDE(x)
#endif

// Bits of a float. NaN payloads and signs are not defined, so every NaN looks the same.
LANE_FUNCTION u32 bits(f32 x) { return x != x ? 0x7fc00000u : __builtin_bit_cast(u32, x); }
LANE_FUNCTION u64 bits(f64 x) {
  return x != x ? 0x7ff8000000000000ull : __builtin_bit_cast(u64, x);
}
LANE_FUNCTION u32 bits(f16 x) { return x != x ? 0x7e00u : __builtin_bit_cast(u16, x); }
LANE_FUNCTION f32 from_bits32(u32 x) {
  const f32 f = __builtin_bit_cast(f32, x);
  return f != f ? __builtin_nanf("") : f;  // no signalling NaN
}

LANE_FUNCTION f16 from_bits16(u32 x) {
  HIDE(x);
  const f16 f = __builtin_bit_cast(f16, static_cast<u16>(x));
  return f != f ? static_cast<f16>(__builtin_nanf("")) : f;
}

// Conversions that C++ leaves undefined out of range saturate, and give 0 for NaN.
LANE_FUNCTION u32 to_i32(f32 x) {
  if (x != x) return 0;
  if (x >= 2147483648.0f) return 0x7fffffffu;
  return x <= -2147483648.0f ? 0x80000000u : static_cast<u32>(static_cast<i32>(x));
}
LANE_FUNCTION u32 to_u32(f32 x) {
  if (!(x > 0.0f)) return 0;
  return x >= 4294967296.0f ? 0xffffffffu : static_cast<u32>(x);
}
LANE_FUNCTION u32 to_i32(f64 x) {
  if (x != x) return 0;
  if (x >= 2147483647.0) return 0x7fffffffu;
  return x <= -2147483648.0 ? 0x80000000u : static_cast<u32>(static_cast<i32>(x));
}
LANE_FUNCTION u64 to_u64(f64 x) {
  if (!(x > 0.0)) return 0;
  return x >= 18446744073709551616.0 ? ~0ull : static_cast<u64>(x);
}
LANE_FUNCTION u32 to_i16(f16 x) {
  if (x != x) return 0;
  const f32 f = x;
  return f >= 32767.0f    ? 32767u
         : f <= -32768.0f ? 0xffff8000u
                          : static_cast<u32>(static_cast<i16>(x));
}

template <class T>
LANE_FUNCTION T divide(T a, T b) {
  HIDE(a);
  return a / (b | 1);
}
template <class T>
LANE_FUNCTION T remainder(T a, T b) {
  HIDE(a);
  return a % (b | 1);
}
LANE_FUNCTION f16 negate(f16 x) {
  HIDE(x);
  return -x;
}
template <class T>
LANE_FUNCTION T subtract(T a, T b) {
  HIDE(a);
  return a - b;
}

// +0 for both zeros, where the sign of a zero is left open.
template <class T>
LANE_FUNCTION T positive_zero(T x) {
  return x == static_cast<T>(0) ? static_cast<T>(0) : x;
}
LANE_FUNCTION f32 min_float(f32 a, f32 b) { return positive_zero(__builtin_fminf(a, b)); }
LANE_FUNCTION f32 max_float(f32 a, f32 b) { return positive_zero(__builtin_fmaxf(a, b)); }
LANE_FUNCTION f64 min_float(f64 a, f64 b) { return positive_zero(__builtin_fmin(a, b)); }
LANE_FUNCTION f64 max_float(f64 a, f64 b) { return positive_zero(__builtin_fmax(a, b)); }
LANE_FUNCTION f16 min_float(f16 a, f16 b) { return static_cast<f16>(min_float(f32(a), f32(b))); }
LANE_FUNCTION f16 max_float(f16 a, f16 b) { return static_cast<f16>(max_float(f32(a), f32(b))); }
// clang selects v_med3_f32 for this, which differs from it when a value is NaN.
LANE_FUNCTION f32 median(f32 a, f32 b, f32 c) {
  a = a != a ? 1.0f : a;
  b = b != b ? -2.0f : b;
  c = c != c ? 0.5f : c;
  return positive_zero(
      __builtin_fminf(__builtin_fmaxf(a, b), __builtin_fmaxf(c, __builtin_fminf(a, b))));
}
// clang selects v_fma_mixlo_f16 with a third source of +0 for a narrowed product, so that a product
// of -0 becomes +0.
LANE_FUNCTION f16 narrow(f32 x) { return positive_zero(static_cast<f16>(x)); }
LANE_FUNCTION f32 with_sign(f32 a, f32 b) { return b != b ? a : __builtin_copysignf(a, b); }

LANE_FUNCTION u32 rotate(u32 a, u32 n) { return __builtin_rotateleft32(a, n); }
LANE_FUNCTION u64 rotate(u64 a, u64 n) { return __builtin_rotateleft64(a, n); }
LANE_FUNCTION u32 funnel(u32 high, u32 low, u32 n) {
  return static_cast<u32>((static_cast<u64>(high) << 32 | low) >> (n & 31));
}
LANE_FUNCTION u32 mul_high(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }
LANE_FUNCTION u32 mul_high_signed(u32 a, u32 b) {
  return static_cast<u32>(static_cast<i64>(static_cast<i32>(a)) * static_cast<i32>(b) >> 32);
}
LANE_FUNCTION u32 permute_bytes(u32 a, u32 b, u32 order) {
  const u64 source = static_cast<u64>(a) << 32 | b;
  u32 out = 0;
  for (u32 n = 0; n < 4; ++n)
    out |= static_cast<u32>(source >> 8 * (order >> 8 * n & 7) & 255) << 8 * n;
  return out;
}
LANE_FUNCTION u32 dot_bytes(u32 a, u32 b, u32 c) {
  HIDE(a);
  HIDE(b);
  HIDE(c);
  for (u32 n = 0; n < 32; n += 8) {
    c += static_cast<u32>(static_cast<i8>(a >> n)) * static_cast<u32>(static_cast<i8>(b >> n));
  }
  HIDE(c);
  return c;
}

// Two 16-bit values in one word.
LANE_FUNCTION u16x2 halves(u32 x) { return __builtin_bit_cast(u16x2, x); }
LANE_FUNCTION u32 word(u16x2 x) { return __builtin_bit_cast(u32, x); }
LANE_FUNCTION u32 signed_min(u32 a, u32 b) {
  return __builtin_bit_cast(
      u32, __builtin_elementwise_min(__builtin_bit_cast(i16x2, a), __builtin_bit_cast(i16x2, b)));
}
LANE_FUNCTION u32 float_pair(f16x2 x) { return bits(x.x) | bits(x.y) << 16; }

LANE_FUNCTION u32 read_byte(const u32* words, u32 at) {
  return reinterpret_cast<const u8*>(words)[at];
}
LANE_FUNCTION u32 read_signed_byte(const u32* words, u32 at) {
  return static_cast<u32>(reinterpret_cast<const i8*>(words)[at]);
}
LANE_FUNCTION u32 read_short(const u32* words, u32 at) {
  u16 value;
  __builtin_memcpy(&value, reinterpret_cast<const u8*>(words) + 2 * at, 2);
  return value;
}

constexpr u32 kOutWords = 22;

LANE_FUNCTION void write_out(const State& s, const Context& c, u32* out) {
  u32 at = 0;
  for (u64 l : s.l) out[at++] = static_cast<u32>(l), out[at++] = static_cast<u32>(l >> 32);
  for (f64 d : s.d)
    out[at++] = static_cast<u32>(bits(d)), out[at++] = static_cast<u32>(bits(d) >> 32);
  for (u32 i : s.i) out[at++] = i;
  for (f32 f : s.f) out[at++] = bits(f);
  out[at++] = bits(s.h[0]) | bits(s.h[1]) << 16;
  out[at++] = (bits(s.h[2]) | bits(s.h[3]) << 16) ^ *c.slot;
}

#if defined(__AMDGCN__)
#include "card.h"
#else
#include "host.h"
#endif
