// The numbers of each format of the cache: how they become those that the products take, and how a
// number becomes one of the format.
#pragma once

#include "core/decode_args.h"
#include "gcn/fp8.h"
#include "gcn/int8.h"
#include "gcn/math.h"
#include "gcn/vec.h"

namespace flashattn {

// kElementBytes; kExponent: widen() and pair() divide by 2^kExponent, and whoever takes their
// results multiplies what comes of them. widen() makes fp16 of 8 numbers, each kBias too large;
// pair() takes a word of each of two rows and makes a pair of each of its columns. kFinite: all
// numbers are, so that zeros times what lies past a row's columns are zeros.
template <KvFormat F>
struct KvNumbers;

template <>
struct KvNumbers<KvFormat::plain> {
  static constexpr int kElementBytes = 2;
  static constexpr bool kFinite = false;
  static constexpr int kExponent = 0;
  static constexpr float kBias = 0.0f;

  __device__ static gcn::half8 widen(gcn::pairs4 x) { return __builtin_bit_cast(gcn::half8, x); }
  __device__ static void pair(uint32_t a, uint32_t b, gcn::half2* pairs) {
    const gcn::half2 x = gcn::as_half2(a), y = gcn::as_half2(b);
    pairs[0] = {x.x, y.x};
    pairs[1] = {x.y, y.y};
  }
};

// Numbers of a row that has a scale of its own are multiplied so that its largest becomes
// kLargestOfRow before they are rounded.
template <>
struct KvNumbers<KvFormat::int8> {
  static constexpr int kElementBytes = 1;
  static constexpr bool kFinite = true;
  static constexpr int kExponent = 6;
  static constexpr float kBias = gcn::kInt8Bias;
  static constexpr float kLargestOfRow = 127.0f;

  __device__ static gcn::half8 widen(gcn::pairs2 x) { return gcn::int8_to_biased_half(x); }
  __device__ static void pair(uint32_t a, uint32_t b, gcn::half2* pairs) {
    gcn::int8_pairs(a, b, pairs);
  }
  __device__ static uint8_t round(float x) {
    const float within = __builtin_fminf(__builtin_fmaxf(x, -kLargestOfRow), kLargestOfRow);
    return static_cast<int8_t>(__builtin_rintf(within));
  }
};

template <>
struct KvNumbers<KvFormat::e4m3> {
  static constexpr int kElementBytes = 1;
  static constexpr bool kFinite = false;
  static constexpr int kExponent = 8;
  static constexpr float kBias = 0.0f;
  static constexpr float kLargestOfRow = 448.0f;

  __device__ static gcn::half8 widen(gcn::pairs2 x) { return gcn::e4m3_to_half(x); }
  __device__ static void pair(uint32_t a, uint32_t b, gcn::half2* pairs) {
    gcn::e4m3_pairs(a, b, pairs);
  }
  __device__ static uint8_t round(float x) { return gcn::to_fp8<gcn::kE4m3>(x); }
};

// Its range is fp16's, so far more than a row needs; 1.75 makes the scale as large as the other
// formats have it, and numbers below 2^-14 are 2^-15 of the row's largest.
template <>
struct KvNumbers<KvFormat::e5m2> {
  static constexpr int kElementBytes = 1;
  static constexpr bool kFinite = false;
  static constexpr int kExponent = 0;
  static constexpr float kBias = 0.0f;
  static constexpr float kLargestOfRow = 1.75f;

  __device__ static gcn::half8 widen(gcn::pairs2 x) { return gcn::e5m2_to_half(x); }
  __device__ static void pair(uint32_t a, uint32_t b, gcn::half2* pairs) {
    gcn::e5m2_pairs(a, b, pairs);
  }
  __device__ static uint8_t round(float x) { return gcn::to_fp8<gcn::kE5m2>(x); }
};

// Neighbouring columns of a row as they come from memory.
template <KvFormat F, int columns>
using KvChunk = gcn::Words<columns * KvNumbers<F>::kElementBytes / 4>;

}  // namespace flashattn
