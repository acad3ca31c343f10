// append_kv.h for a cache of bytes: a row's numbers are scaled, by a factor that brings its largest
// to the format's or by the cache's own, and rounded. A wave takes a head.
#pragma once

#include "attention/kv_format.h"
#include "gcn/reduce_wave.h"
#include "gcn/wave.h"
#include "kernels/append_kv.h"

namespace flashattn {

template <KvFormat F>
class ByteRow {
  using Format = KvNumbers<F>;
  static constexpr int kPairs = 512 / 2 / kWaveSize;  // of a lane, at the largest head_dim

 public:
  __device__ ByteRow(const AppendArgs& args, const gcn::half* row, int columns, int position,
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

  __device__ void store_by_largest(uint8_t* to, float* scale) const {
    const float largest = largest_of_wave();
    // 2^-100 keeps the quotient finite; all numbers are 0 then. Zeros times a scale that is no
    // finite number are NaN when they are read: so is a whole row that holds inf or NaN.
    const bool finite = largest < __builtin_inff();
    store(to, finite ? Format::kLargestOfRow / __builtin_fmaxf(largest, 0x1p-100f) : 0.0f, finite);
    if (gcn::lane_id() == 0) *scale = largest / Format::kLargestOfRow;
  }

  __device__ void store_by_scale(uint8_t* to, float scale) const { store(to, 1.0f / scale, true); }

 private:
  __device__ void store(uint8_t* to, float factor, bool finite) const {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (gcn::lane_id() + i * kWaveSize >= pairs_) continue;
      to[pair_[i].first] = finite ? Format::round(pair_[i].a * factor) : 0;
      to[pair_[i].second] = finite ? Format::round(pair_[i].b * factor) : 0;
    }
  }

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

template <KvFormat F>
__device__ inline void append_bytes(const AppendArgs& args, const TokenRows& from,
                                    const TensorView& cache, const KvScales& scales,
                                    const AppendPlace& place, int columns, int position,
                                    bool turn) {
  auto* const to = static_cast<uint8_t*>(cache.data) + place.item * cache.batch_stride +
                   place.row * cache.row_stride;
  float* const scale =
      scales.data + place.item * scales.item_stride + place.row * scales.row_stride;
  for (int head = gcn::wave_id(); head < args.heads_kv; head += kAppendThreads / kWaveSize) {
    const ByteRow<F> row(args, from.base + head * from.head_stride, columns, position, turn);
    if (scales.one_for_all())
      row.store_by_scale(to + head * cache.head_stride, *scale);
    else
      row.store_by_largest(to + head * cache.head_stride, scale + head * scales.head_stride);
  }
}

template <KvFormat F>
__device__ inline void append_kv_bytes(const AppendArgs& args) {
  const NewToken token = NewToken::from_grid(args);
  if (token.batch >= args.batch) return;
  turn_query<Element::f16>(args, token);
  if (token.index >= args.seqlen_new) return;
  const AppendPlace place = AppendPlace::of(args.cache, token);
  if (!place.exists()) return;
  append_bytes<F>(args, TokenRows::of(args.k, token.batch, token.index), args.cache.k,
                  args.cache.k_scale, place, args.head_dim, token.position(), args.cos != nullptr);
  append_bytes<F>(args, TokenRows::of(args.v, token.batch, token.index), args.cache.v,
                  args.cache.v_scale, place, args.head_dim_v, token.position(), false);
}

}  // namespace flashattn
