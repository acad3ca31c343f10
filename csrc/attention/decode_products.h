// The products of decode: scores of a pass of rows, and O += P V, for the chunks that a lane holds.
// fp16 runs on dot2: pairs of columns, pairs of keys. bf16 is unpacked to fp32 and multiplied
// there, at half the rate and exactly; memory still takes longer. Keys come as parts of 8
// columns, values as chunks of the format that Numbers is of.
#pragma once

#include "attention/decode_shape.h"
#include "attention/kv_format.h"
#include "attention/lds_storage.h"
#include "gcn/bf16.h"
#include "gcn/math.h"
#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn {

using float4v = float __attribute__((ext_vector_type(4)));

template <DecodeTile T, Element E>
class DecodeProducts;

template <DecodeTile T>
class DecodeProducts<T, Element::f16> {
  using S = DecodeShape<T>;
  using Storage = DecodeLoopStorage<T, Element::f16>;
  using Keys = const gcn::half8 (&)[S::kKeys * S::kParts];

 public:
  // The first parts of all chunks of a row, then the others: lanes that read them meet no LDS bank
  // twice.
  __device__ static void store_q(Storage& lds, int row, int part, gcn::half8 x) {
    lds_write(&lds.q[row][part * 8], x);
  }

  // s[row][key]: this lane's share of the products of rows [first_row, first_row + kPassRows).
  // Parts of Q are read `ahead` of their use, and no earlier: the registers are O's.
  template <int ahead>
  __device__ static void scores(const Storage& lds, int first_row, int chunk, Keys k,
                                float (&s)[S::kPassRows * S::kKeys]) {
    constexpr int reads = S::kPassRows * S::kParts;
    gcn::half8 q[ahead + 1];
    const auto read = [&](int i) {
      const int row = first_row + i / S::kParts, part = i % S::kParts;
      q[i % (ahead + 1)] = lds_read<gcn::half8>(&lds.q[row][(part * S::kLanes + chunk) * 8]);
    };
    static_for<ahead>([&](auto i) { read(i); });
    static_for<reads>([&](auto i) {
      constexpr int row = i / S::kParts, part = i % S::kParts;
      if (i + ahead < reads) read(i + ahead);
#pragma unroll
      for (int u = 0; u < S::kKeys; ++u) {
        float& x = s[row * S::kKeys + u];
        x = product(q[i % (ahead + 1)], k[u * S::kParts + part], part == 0 ? 0.0f : x);
      }
      gcn::pin_schedule();
    });
  }

  // acc + the product of a row and a key in the columns of `pair`.
  __device__ static float add_pair(const Storage& lds, int row, int pair, gcn::half2 k, float acc) {
    return gcn::dot2(lds_read<gcn::half2>(&lds.q[row][2 * pair]), k, acc);
  }

  // Of a key of the step.
  __device__ static void store_p(Storage& lds, int wave, int key, int row, float p) {
    const int group = key % S::kOfValues.groups, load = key / S::kOfValues.groups;
    auto* const pair = reinterpret_cast<gcn::half*>(&lds.p[wave][group][load / 2][row]);
    pair[load % 2] = static_cast<gcn::half>(p);
  }

  template <class Numbers, class Chunk>
  __device__ static void accumulate(const Storage& lds, int wave, int group,
                                    const Chunk (&v)[S::kValues], float (&o)[T.rows][S::kColumns]) {
    constexpr int reads = S::kValues / 2 * T.rows / 4;  // each of 4 rows and a pair of keys
    gcn::pairs4 p[2];
    const auto read = [&](int i) {
      p[i % 2] = lds_read<gcn::pairs4>(&lds.p[wave][group][i * 4 / T.rows][i * 4 % T.rows]);
    };
    gcn::half2 pairs[S::kColumns];
    read(0);
    static_for<reads>([&](auto i) {
      constexpr int u = i * 4 / T.rows * 2, first = i * 4 % T.rows;
      if (i + 1 < reads) read(i + 1);
      if constexpr (first == 0) {
        constexpr int words = sizeof(Chunk) / 4;
#pragma unroll
        for (int w = 0; w < words; ++w)
          Numbers::pair(v[u][w], v[u + 1][w], &pairs[w * (S::kColumns / words)]);
      }
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int e = 0; e < S::kColumns; ++e)
          o[first + r][e] = gcn::dot2(gcn::as_half2(p[i % 2][r]), pairs[e], o[first + r][e]);
      gcn::pin_schedule();
    });
  }

 private:
  __device__ static float product(gcn::half8 a, gcn::half8 b, float x) {
#pragma unroll
    for (int e = 0; e < 8; e += 2) x = gcn::dot2({a[e], a[e + 1]}, {b[e], b[e + 1]}, x);
    return x;
  }
};

template <DecodeTile T>
class DecodeProducts<T, Element::bf16> {
  using S = DecodeShape<T>;
  using Storage = DecodeLoopStorage<T, Element::bf16>;
  using Keys = const gcn::half8 (&)[S::kKeys * S::kParts];
  static constexpr int kUpper = T.columns_q() / 2;

 public:
  // The first four columns of all parts of a row, then the other four, for the same reason.
  __device__ static void store_q(Storage& lds, int row, int part, gcn::half8 x) {
    float f[8];
    unpack(x, f);
    lds_write(&lds.q[row][part * 4], float4v{f[0], f[1], f[2], f[3]});
    lds_write(&lds.q[row][kUpper + part * 4], float4v{f[4], f[5], f[6], f[7]});
  }

  template <int ahead>
  __device__ static void scores(const Storage& lds, int first_row, int chunk, Keys k,
                                float (&s)[S::kPassRows * S::kKeys]) {
    constexpr int of_row = 2 * S::kParts, reads = S::kPassRows * of_row;
    float f[S::kKeys * S::kParts][8];
#pragma unroll
    for (int i = 0; i < S::kKeys * S::kParts; ++i) unpack(k[i], f[i]);
    float4v q[ahead + 1];
    const auto read = [&](int i) {
      const int part = i % of_row / 2, half = i % 2;
      const int at = half * kUpper + (part * S::kLanes + chunk) * 4;
      q[i % (ahead + 1)] = lds_read<float4v>(&lds.q[first_row + i / of_row][at]);
    };
    static_for<ahead>([&](auto i) { read(i); });
    static_for<reads>([&](auto i) {
      constexpr int part = i % of_row / 2, half = i % 2;
      if (i + ahead < reads) read(i + ahead);
#pragma unroll
      for (int e = 0; e < 4; ++e)
#pragma unroll
        for (int u = 0; u < S::kKeys; ++u) {
          float& acc = s[i / of_row * S::kKeys + u];
          acc = __builtin_fmaf(q[i % (ahead + 1)][e], f[u * S::kParts + part][half * 4 + e],
                               part + half + e == 0 ? 0.0f : acc);
        }
      gcn::pin_schedule();
    });
  }

  __device__ static float add_pair(const Storage& lds, int row, int pair, gcn::half2 k, float acc) {
    const int chunk = pair / 4, half = pair % 4 / 2;
    const float* const q = &lds.q[row][half * kUpper + chunk * 4 + pair % 2 * 2];
    const uint32_t bits = gcn::as_bits(k);
    acc = __builtin_fmaf(q[0], gcn::bf16_to_float(bits), acc);
    return __builtin_fmaf(q[1], __builtin_bit_cast(float, bits & 0xffff0000u), acc);
  }

  __device__ static void store_p(Storage& lds, int wave, int key, int row, float p) {
    const int group = key % S::kOfValues.groups, load = key / S::kOfValues.groups;
    lds.p[wave][group][load][row] = __builtin_bit_cast(uint32_t, p);
  }

  template <class Numbers, class Chunk>
  __device__ static void accumulate(const Storage& lds, int wave, int group,
                                    const Chunk (&v)[S::kValues], float (&o)[T.rows][S::kColumns]) {
    constexpr int reads = S::kValues * T.rows / 4;  // each of 4 rows and a key
    float4v p[2];
    const auto read = [&](int i) {
      p[i % 2] = lds_read<float4v>(&lds.p[wave][group][i * 4 / T.rows][i * 4 % T.rows]);
    };
    float f[S::kColumns];
    read(0);
    static_for<reads>([&](auto i) {
      constexpr int first = i * 4 % T.rows;
      if (i + 1 < reads) read(i + 1);
      if constexpr (first == 0) unpack(v[i * 4 / T.rows], f);
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int e = 0; e < S::kColumns; ++e)
          o[first + r][e] = __builtin_fmaf(p[i % 2][r], f[e], o[first + r][e]);
      gcn::pin_schedule();
    });
  }

 private:
  template <class Pairs, int n>
  __device__ static void unpack(Pairs x, float (&f)[n]) {
    const auto pairs = __builtin_bit_cast(gcn::Words<n / 2>, x);
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      f[2 * i] = gcn::bf16_to_float(pairs[i]);
      f[2 * i + 1] = __builtin_bit_cast(float, pairs[i] & 0xffff0000u);
    }
  }
};

}  // namespace flashattn
