// append_kv.h for an int8 cache: a row's numbers become integers of 8 bits, of which 127 stands for
// the largest, and a scale. A wave takes a head.
#pragma once

#include "gcn/reduce_wave.h"
#include "gcn/wave.h"
#include "kernels/append_kv.h"

namespace flashattn {

class Int8Row {
  static constexpr int kPairs = 512 / 2 / kWaveSize;  // of a lane, at the largest head_dim

 public:
  __device__ Int8Row(const AppendArgs& args, const gcn::half* row, int columns, int position,
                     bool turn)
      : pairs_(columns / 2) {
    constexpr Element f16 = Element::f16;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int pair = gcn::lane_id() + i * kWaveSize;
      pair_[i] = {0, 0, 0.0f, 0.0f};
      if (pair >= pairs_) continue;
      pair_[i] = turn && pair < args.rotary_dim / 2
                     ? turned_pair<f16>(args, row, pair, position)
                     : Pair{2 * pair, 2 * pair + 1, widen<f16>(row[2 * pair]),
                            widen<f16>(row[2 * pair + 1])};
    }
  }

  __device__ void store(int8_t* to, float* scale) const {
    const float largest = largest_of_wave();
    const bool finite = largest < __builtin_inff();
    // 2^-100 keeps the quotient finite; all integers are 0 then.
    const float factor = 127.0f / __builtin_fmaxf(largest, 0x1p-100f);
    // Zeros times a scale that is no finite number are NaN when they are read: the whole row is.
    const auto rounded = [&](float x) {
      return finite ? static_cast<int8_t>(__builtin_rintf(x * factor)) : int8_t{0};
    };
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (gcn::lane_id() + i * kWaveSize >= pairs_) continue;
      to[pair_[i].first] = rounded(pair_[i].a);
      to[pair_[i].second] = rounded(pair_[i].b);
    }
    if (gcn::lane_id() == 0) *scale = largest / 127.0f;
  }

 private:
  // NaN if any of them is.
  __device__ float largest_of_wave() const {
    const auto larger = [](float a, float b) { return a > b || a != a ? a : b; };
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      most = larger(most, larger(__builtin_fabsf(pair_[i].a), __builtin_fabsf(pair_[i].b)));
    return gcn::reduce_wave(most, larger);
  }

  Pair pair_[kPairs];
  int pairs_;
};

__device__ inline void append_int8(const AppendArgs& args, const TokenRows& from,
                                   const TensorView& cache, const KvScales& scales,
                                   const AppendPlace& place, int columns, int position, bool turn) {
  auto* const to = static_cast<int8_t*>(cache.data) + place.item * cache.batch_stride +
                   place.row * cache.row_stride;
  float* const scale =
      scales.data + place.item * scales.item_stride + place.row * scales.row_stride;
  for (int head = gcn::wave_id(); head < args.heads_kv; head += kAppendThreads / kWaveSize) {
    const Int8Row row(args, from.base + head * from.head_stride, columns, position, turn);
    row.store(to + head * cache.head_stride, scale + head * scales.head_stride);
  }
}

__device__ inline void append_kv_int8(const AppendArgs& args) {
  const NewToken token = NewToken::from_grid(args);
  if (token.batch >= args.batch) return;
  turn_query<Element::f16>(args, token);
  if (token.index >= args.seqlen_new) return;
  const AppendPlace place = AppendPlace::of(args.cache, token);
  if (!place.exists()) return;
  append_int8(args, TokenRows::of(args.k, token.batch, token.index), args.cache.k,
              args.cache.k_scale, place, args.head_dim, token.position(), args.cos != nullptr);
  append_int8(args, TokenRows::of(args.v, token.batch, token.index), args.cache.v,
              args.cache.v_scale, place, args.head_dim_v, token.position(), false);
}

}  // namespace flashattn
