// Joins the partial results of decode's splits: a wave takes some columns of a row.
#pragma once

#include <hip/hip_runtime.h>

#include "attention/epilogue.h"
#include "attention/merge.h"
#include "attention/score_changes.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "gcn/reduce_wave.h"
#include "gcn/wave.h"

namespace flashattn {

// Weights of the splits of one row: lane i has those of splits i and i + 64.
class SplitWeights {
  static constexpr int kHalves = 2;
  static_assert(kHalves * kWaveSize >= kMaxSplits);

 public:
  __device__ SplitWeights(const Partials& parts, int64_t row, int splits) {
    float lse[kHalves];
#pragma unroll
    for (int i = 0; i < kHalves; ++i) {
      const int split = gcn::lane_id() + i * kWaveSize;
      lse[i] = split < splits ? parts.lse[split * parts.rows + row] : -__builtin_inff();
    }
    const auto most_of = [](float a, float b) { return gcn::max2(a, b); };
    const float most = gcn::reduce_wave(gcn::max2(lse[0], lse[1]), most_of);
    const float shift = most == -__builtin_inff() ? 0.0f : most;
#pragma unroll
    for (int i = 0; i < kHalves; ++i) weight_[i] = gcn::exp2(lse[i] - shift);
    const float sum =
        gcn::reduce_wave(weight_[0] + weight_[1], [](float a, float b) { return a + b; });
    inverse_sum_ = sum == 0.0f ? 0.0f : gcn::reciprocal(sum);
    lse_ = sum == 0.0f ? -__builtin_inff() : shift + gcn::log2(sum);
  }

  // Not yet divided by the sum.
  __device__ float of(int split) const {
    return gcn::from_lane(split < kWaveSize ? weight_[0] : weight_[1], split % kWaveSize);
  }
  __device__ float inverse_sum() const { return inverse_sum_; }
  __device__ float lse() const { return lse_; }

 private:
  float weight_[kHalves], inverse_sum_, lse_;
};

template <Element E>
__device__ inline void join_splits(const JoinArgs& args) {
  const int64_t row = int64_t{blockIdx.x} * kJoinRowsAtOnce + gcn::wave_id();
  const Partials& parts = args.partials;
  if (row >= parts.rows) return;
  const SplitWeights weights(parts, row, args.splits);
  const int64_t of_heads = row / args.seqlen_q;
  const int head = static_cast<int>(of_heads % args.heads_q);
  const int64_t batch = of_heads / args.heads_q;
  const float sink = args.sinks == nullptr ? -__builtin_inff() : args.sinks[head] * kLog2e;
  const Joined joined = Joined::of(weights.lse(), sink);
  auto* const out = static_cast<gcn::half*>(args.o.data) + batch * args.o.batch_stride +
                    row % args.seqlen_q * args.o.row_stride + head * args.o.head_stride;
  constexpr int strips = kJoinColumns / kWaveSize;  // of columns
  constexpr int together = 8;                       // splits whose loads are under way at a time
  const int first = static_cast<int>(blockIdx.y) * kJoinColumns + gcn::lane_id();
  float x[strips] = {};
  for (int begin = 0; begin < args.splits; begin += together)
#pragma unroll
    for (int i = 0; i < together; ++i) {
      const bool exists = begin + i < args.splits;
      const int split = exists ? begin + i : begin;
      const float weight = exists ? weights.of(split) : 0.0f;
      const float* const part = parts.o + (split * parts.rows + row) * args.head_dim_v;
#pragma unroll
      for (int strip = 0; strip < strips; ++strip) {
        const int column = first + strip * kWaveSize;
        const float of_split = part[column < args.head_dim_v ? column : 0];
        x[strip] += weight == 0.0f ? 0.0f : weight * of_split;
      }
    }
#pragma unroll
  for (int strip = 0; strip < strips; ++strip) {
    const int column = first + strip * kWaveSize;
    if (column < args.head_dim_v)
      out[column] = narrow<E>(x[strip] * (weights.inverse_sum() * joined.weight_a));
  }
  if (first == 0) args.lse[row] = joined.lse * kLn2;
}

}  // namespace flashattn
