// Joins the partial results of decode's splits: a wave takes some columns of a row. Where rows are
// few and splits can be many, all waves of a workgroup take turns through the splits of one row.
#pragma once

#include <hip/hip_runtime.h>

#include "attention/batch_of_grid.h"
#include "attention/epilogue.h"
#include "attention/merge.h"
#include "attention/score_changes.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/grid.h"
#include "gcn/reduce_wave.h"
#include "gcn/scalar_io.h"
#include "gcn/wave.h"

namespace flashattn {

// Weights of the splits of one row: lane i has those of slots i and i + 64 of its sequence.
class SplitWeights {
  static constexpr int kHalves = 2;
  static_assert(kHalves * kWaveSize >= kMaxSplits);

 public:
  __device__ SplitWeights(const Partials& parts, const SlotRange& slots, int64_t row) {
    float lse[kHalves];
#pragma unroll
    for (int i = 0; i < kHalves; ++i) {
      const int split = gcn::lane_id() + i * kWaveSize;
      const int64_t slot = slots.first + split;
      lse[i] = split < slots.count ? parts.lse[slot * parts.rows + row] : -__builtin_inff();
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

// What some splits of a row add to some of its columns: a lane has one of each strip.
struct SplitSum {
  static constexpr int kStrips = kJoinColumns / kWaveSize;
  static constexpr int kTogether = 8;  // splits whose loads are under way at a time

  float x[kStrips];
  float lse;  // of all splits

  // Splits from kTogether * turn on, as many of every round of the waves.
  __device__ static SplitSum of(const JoinArgs& args, const SlotRange& slots, int64_t row,
                                int column, int turn) {
    const Partials& parts = args.partials;
    const SplitWeights weights(parts, slots, row);
    SplitSum sum{};
    for (int begin = turn * kTogether; begin < slots.count; begin += args.waves_of_row * kTogether)
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const bool exists = begin + i < slots.count;
        const int split = exists ? begin + i : begin;
        const float weight = exists ? weights.of(split) : 0.0f;
        const int64_t slot = slots.first + split;
        const float* const part = parts.o + (slot * parts.rows + row) * args.head_dim_v;
#pragma unroll
        for (int strip = 0; strip < kStrips; ++strip) {
          const int at = column + strip * kWaveSize;
          const float of_split = part[at < args.head_dim_v ? at : 0];
          sum.x[strip] += weight == 0.0f ? 0.0f : weight * of_split;
        }
      }
#pragma unroll
    for (float& x : sum.x) x *= weights.inverse_sum();
    sum.lse = weights.lse();
    return sum;
  }
};

template <Element E>
__device__ inline void join_splits(const JoinArgs& args) {
  __shared__ float of_waves[kJoinWaves][SplitSum::kStrips][kWaveSize];
  const int batch = batch_of_grid();
  if (batch >= args.batch) return;
  SlotRange slots{0, args.splits};
  if (const SlotRange* const found = args.partials.of_sequence; found != nullptr)
    slots = {gcn::load_scalar(&found[batch].first), gcn::load_scalar(&found[batch].count)};
  // A barrier does not wait for waves that have ended.
  const int wave = gcn::wave_id(), lane = gcn::lane_id(), turn = wave & (args.waves_of_row - 1);
  const int rounds = slots.count == 1 ? 0 : ceil_div(slots.count, SplitSum::kTogether);
  if (turn >= rounds) return;

  const int strips_of_row = ceil_div(args.head_dim_v, kJoinColumns);
  const int index = static_cast<int>(blockIdx.x);
  const int row = (index / strips_of_row * kJoinWaves + wave) / args.waves_of_row;
  const int head = row / args.seqlen_q, token = row % args.seqlen_q;
  if (head >= args.heads_q) return;
  int64_t row_of_q = token;
  if (args.cu_seqlens_q != nullptr) {
    row_of_q += gcn::load_scalar(args.cu_seqlens_q + batch);
    if (row_of_q >= gcn::load_scalar(args.cu_seqlens_q + batch + 1)) return;
  }

  const int column = index % strips_of_row * kJoinColumns + lane;
  const int64_t lse_index = batch * args.lse_batch_stride + head * args.lse_head_stride + row_of_q;
  const int64_t row_of_slot = args.partials.of_sequence == nullptr ? lse_index : row;
  const SplitSum sum = SplitSum::of(args, slots, row_of_slot, column, turn);
#pragma unroll
  for (int strip = 0; strip < SplitSum::kStrips; ++strip)
    of_waves[wave][strip][lane] = sum.x[strip];
  gcn::workgroup_barrier();
  if (turn > 0) return;

  const float sink = args.sinks == nullptr ? -__builtin_inff() : args.sinks[head] * kLog2e;
  const Joined joined = Joined::of(sum.lse, sink);
  auto* const out = static_cast<gcn::half*>(args.o.data) + batch * args.o.batch_stride +
                    row_of_q * args.o.row_stride + head * args.o.head_stride;
#pragma unroll
  for (int strip = 0; strip < SplitSum::kStrips; ++strip) {
    float x = 0.0f;
#pragma unroll
    for (int w = 0; w < kJoinWaves; ++w) {
      const bool joins = w < rounds && w < args.waves_of_row;
      x += joins ? of_waves[(wave + w) % kJoinWaves][strip][lane] : 0.0f;
    }
    const int at = column + strip * kWaveSize;
    if (at < args.head_dim_v) out[at] = narrow<E>(x * joined.weight_a);
  }
  if (column == 0) args.lse[lse_index] = joined.lse * kLn2;
}

}  // namespace flashattn
