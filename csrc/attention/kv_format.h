// What a lane loads of a key in each format of the cache, how it becomes 8 numbers that the
// products take, and how a number becomes one of the format.
#pragma once

#include "core/decode_args.h"
#include "gcn/buffer_narrow.h"
#include "gcn/fp8.h"
#include "gcn/int8.h"
#include "gcn/math.h"

namespace flashattn {

template <KvFormat F>
struct KvChunk;

template <>
struct KvChunk<KvFormat::plain> {
  using Type = gcn::half8;
  static constexpr int kElementBytes = 2;

  __device__ static Type load(const gcn::BufferResource& rows, int offset, int uniform_offset) {
    return gcn::load8(rows, offset, uniform_offset);
  }
  __device__ static gcn::half8 widen(Type x) { return x; }
};

// widen() divides by 2^exponent, and the scale that its results are multiplied by is so much
// larger: in fp16 it keeps its digits for rows of small numbers, where those of 1e-5 had 24 % of
// error in int8. v_ldexp_f32 holds the exponent itself; a factor would be one SGPR more, which
// spilled.
template <int exponent>
struct ByteChunk {
  using Type = gcn::pairs2;
  static constexpr int kElementBytes = 1;

  __device__ static Type load(const gcn::BufferResource& rows, int offset, int uniform_offset) {
    return gcn::load_bytes8(rows, offset, uniform_offset);
  }
  __device__ static float scale(float x) { return gcn::ldexp(x, exponent); }
};

// Numbers of a row that has a scale of its own are multiplied so that its largest becomes
// kLargestOfRow before they are rounded.
template <>
struct KvChunk<KvFormat::int8> : ByteChunk<6> {
  static constexpr float kLargestOfRow = 127.0f;

  __device__ static gcn::half8 widen(Type x) { return gcn::int8_to_half(x); }
  __device__ static uint8_t round(float x) {
    const float within = __builtin_fminf(__builtin_fmaxf(x, -kLargestOfRow), kLargestOfRow);
    return static_cast<int8_t>(__builtin_rintf(within));
  }
};

template <>
struct KvChunk<KvFormat::e4m3> : ByteChunk<8> {
  static constexpr float kLargestOfRow = 448.0f;

  __device__ static gcn::half8 widen(Type x) { return gcn::e4m3_to_half(x); }
  __device__ static uint8_t round(float x) { return gcn::to_fp8<gcn::kE4m3>(x); }
};

// Its range is fp16's, so far more than a row needs; 1.75 makes the scale as large as the other
// formats have it, and numbers below 2^-14 are 2^-15 of the row's largest.
template <>
struct KvChunk<KvFormat::e5m2> : ByteChunk<0> {
  static constexpr float kLargestOfRow = 1.75f;

  __device__ static gcn::half8 widen(Type x) { return gcn::e5m2_to_half(x); }
  __device__ static uint8_t round(float x) { return gcn::to_fp8<gcn::kE5m2>(x); }
};

}  // namespace flashattn
