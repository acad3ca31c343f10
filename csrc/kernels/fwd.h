// The forward: O = softmax(scale * Q K^T) V and LSE, one query block a workgroup, K and V streamed
// (FlashAttention-2, Dao 2023, algorithm 1).
#pragma once

#include "attention/block_range.h"
#include "attention/dropout.h"
#include "attention/epilogue.h"
#include "attention/hide.h"
#include "attention/lds_storage.h"
#include "attention/partial_output.h"
#include "attention/pv.h"
#include "attention/qk.h"
#include "attention/score_changes.h"
#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "attention/tile_io.h"
#include "attention/work_item.h"
#include "core/fwd_args.h"
#include "gcn/wave.h"

namespace flashattn {

// Where gfx900 computes dot2 by two instructions, the steps of large tiles pass the inliner's
// limit, and registers of this object become memory (D192 bf16: 952 bytes of scratch). So they are
// forced.
template <Tile T, Element E>
class ForwardBlock {
  using L = Shape<T>;
  static constexpr bool kBf16 = E == Element::bf16, kF32 = E == Element::f32;
  static constexpr bool kModified = T.scores == Scores::modified;
  // Scores that are multiplied by something of each row and key anyway take the scale with it. fp32
  // has the range to put it into Q.
  static constexpr bool kScaled = kBf16 || kModified || kF32;

 public:
  __device__ ForwardBlock(const FwdArgs& args, LdsStorage<T, E>& lds) : args_(args), lds_(lds) {}

  // False if there is nothing to compute.
  __device__ bool start(const WorkItem& item) {
    item_ = item;
    if (item_.batch >= args_.batch) return false;
    sequence_ = Sequence::of(args_, item_.batch);
    if (item_.first_row >= sequence_.seqlen_q) return false;
    visible_ = {sequence_.seqlen_q, sequence_.seqlen_k,
                args_.top_left ? 0 : sequence_.seqlen_k - sequence_.seqlen_q, args_.window_left,
                args_.window_right};
    return true;
  }

  __device__ BlockRange blocks() const { return BlockRange::of<T>(visible_, item_.first_row); }

  __device__ __forceinline__ void attend(const BlockRange& range) {
    prologue();
    load_first(range.begin, range.begin < range.end);
#pragma unroll 1
    for (int block = range.begin; block < range.end; ++block)
      step(block, range.is_whole(block), block + 1 < range.end);
  }

  __device__ __forceinline__ void store() const {
    store(o_factor(), [&](int i) { return row_[i].total(scale_log2_); });
  }

  __device__ int wave() const { return gcn::uniform(tile_row_) / T.rows_per_wave(); }

  // Of the keys that were attended to, without a sink.
  __device__ void store_partial(const PartialOutput<T>& to) const {
    to.store(scale_log2_, o_factor(), row_, o_);
  }

  // What `pieces` of the query block stored, always in the order of the keys; piece(i) is the i-th.
  // 0: what this one has, by the same instructions: beside others its O would be kept while pieces
  // are merged, and 134 VGPRs are too many for two workgroups a compute unit.
  template <class Piece>
  __device__ void store_merged(int pieces, Piece piece) {
    RowTotal totals[L::kRows];
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) totals[i] = row_[i].total(scale_log2_);
    float factor = o_factor();
    if (pieces > 0) {
      factor = 1.0f;
      clear(o_);
      MergedRow merged[L::kRows];
#pragma unroll 1
      for (int i = 0; i < pieces; ++i) piece(i).merge_into(merged, o_);
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) totals[i] = merged[i].total();
    }
    store(factor, [&](int i) { return totals[i]; });
  }

 private:
  template <class Total>
  __device__ __forceinline__ void store(float factor, Total total) const {
    // With all that may change scores there are not SGPRs for these too during the loop.
    const FwdArgs& args = kModified ? gcn::kernel_argument<FwdArgs>() : args_;
    const OutputRows out = {
        .base = head_base<E>(args.o, sequence_.batch, sequence_.first_q, item_.head_q),
        .row_stride = args.o.row_stride * halves_of(E),
        .lse = args.lse + sequence_.batch * args.lse_batch_stride +
               item_.head_q * args.lse_head_stride + sequence_.first_q,
        .count = sequence_.seqlen_q,
        .columns = args.head_dim_v,
        .factor = factor,
        .sink = args.sinks == nullptr ? -__builtin_inff() : args.sinks[item_.head_q] * kLog2e};
    store_output<T, E>(out, item_.first_row + tile_row_, lane_in_group_, total, o_);
  }

  __device__ __forceinline__ void prologue() {
    const int lane = gcn::lane_id();
    lane_in_group_ = lane % kGroupLanes;
    tile_row_ = gcn::wave_id() * T.rows_per_wave() + lane / kGroupLanes;
    scale_log2_ = kScaled ? 1.0f : base2_scale(args_.softmax_scale);
    k_ = rows(args_.k, item_.head_kv, sequence_.first_k, sequence_.seqlen_k, args_.head_dim);
    v_ = rows(args_.v, item_.head_kv, sequence_.first_k, sequence_.seqlen_k, args_.head_dim_v);
    stage_q(lds_,
            rows(args_.q, item_.head_q, sequence_.first_q, sequence_.seqlen_q, args_.head_dim),
            item_.first_row, q_factor());
    if constexpr (kBf16) {
      v_exponent_ = 0;
      if (threadIdx.x < 2) lds_.scales.v_largest[threadIdx.x] = 0;
      gcn::workgroup_barrier();  // before the first block's V joins in
    }
    clear(o_);
  }

  // What a step needs at its start; nothing is read if there is no such step, but the registers are
  // written: values that might survive from the step before would occupy them all through it.
  __device__ void load_first(int block, bool exists) {
    k_in_flight_.load(k_, block * T.block_n, exists);
    if constexpr (T.kv == KvBuffers::apart) v_in_flight_.load(v_, block * T.block_n, exists);
  }

  __device__ __forceinline__ void step(int block, bool whole, bool more) {
    float s[L::kRows][L::kKeys];
    uint32_t p[L::kRows][L::kKeys / per_word(E)];
    BlockSoftmax<T, L::kRows, L::kKeys, L::kCols> softmax(scale_log2_, row_);

    if constexpr (T.kv == KvBuffers::apart) join_v(block);
    gcn::workgroup_barrier();  // no wave reads the previous K and V any more (first step: none has)
    store_k();
    if constexpr (T.kv == KvBuffers::apart) store_v(block);
    gcn::workgroup_barrier();
    if constexpr (T.kv == KvBuffers::apart) {
      load_first(block + 1, more);
    } else {
      v_in_flight_.load(v_, block * T.block_n, true);
    }
    score_block<T, E>(lds_, tile_row_, lane_in_group_, s);
    if constexpr (kBf16) scale_scores(s);
    if constexpr (kModified) change_scores(s, block * T.block_n);
    if (!whole)
      hide_unseen<T>(s, visible_, item_.first_row, tile_row_, block * T.block_n, lane_in_group_);
    softmax.raise_limits(s, o_);
    softmax.probabilities(s, p);
    if constexpr (kModified) drop(p, block * T.block_n);
    if constexpr (T.kv == KvBuffers::in_turns) {
      join_v(block);
      gcn::workgroup_barrier();  // no wave reads K any more
      store_v(block);
      gcn::workgroup_barrier();
      load_first(block + 1, more);
    }
    if constexpr (kF32) {
      // A sum of sums: the rounding of 16384 products one by one adds up to 7e-6.
      Output block_o;
      clear(block_o);
      add_pv(p, block_o);
#pragma unroll
      for (int i = 0; i < L::kRows; ++i)
#pragma unroll
        for (int c = 0; c < L::kCols; ++c) o_[i][c] += block_o[i][c];
    } else {
      add_pv(p, o_);
    }
  }

  using Output = float[L::kRows][L::kCols];

  __device__ __forceinline__ static void clear(Output& o) {
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int c = 0; c < L::kCols; ++c) o[i][c] = 0.0f;
  }

  __device__ __forceinline__ void add_pv(const uint32_t (&p)[L::kRows][L::kKeys / per_word(E)],
                                         Output& o) {
#pragma unroll
    for (int part = 0; part < T.block_n / T.p_keys; ++part) {
      store_p<T, E>(lds_.p, tile_row_, lane_in_group_, part, p);
      accumulate_pv<T, E>(lds_.p, lds_.kv.v, tile_row_, lane_in_group_, part, o);
    }
  }

  __device__ void store_k() {
    if constexpr (kBf16)
      k_in_flight_.store(lds_.kv.k, lds_.scales.k_scale);
    else
      k_in_flight_.store(lds_.kv.k);
  }

  // bf16: before a barrier all threads tell the largest exponent of their V.
  __device__ void join_v(int block) {
    if constexpr (kBf16) {
      const uint32_t largest = gcn::max_over<kWaveSize>(v_in_flight_.largest_exponent());
      if (gcn::lane_id() == 0) atomicMax(&lds_.scales.v_largest[block % 2], largest);
    }
  }

  // bf16: after it they agree on one factor for the block, which only ever falls.
  __device__ __forceinline__ void store_v(int block) {
    if constexpr (kBf16) {
      const uint32_t largest = gcn::uniform(lds_.scales.v_largest[block % 2]);
      if (threadIdx.x == 0) lds_.scales.v_largest[1 - block % 2] = 0;
      if (largest > v_exponent_) {
        const float factor = RowScale::inverse(v_exponent_) * RowScale::factor(largest);
#pragma unroll
        for (int i = 0; i < L::kRows; ++i)
#pragma unroll
          for (int c = 0; c < L::kCols; ++c) gcn::scale_by(o_[i][c], factor);
        v_exponent_ = largest;
      }
      v_in_flight_.convert_from_bf16(RowScale::factor(v_exponent_));
    }
    v_in_flight_.store(lds_.kv.v);
  }

  // bf16: undoes what normalised the rows of Q and K.
  __device__ __forceinline__ void scale_scores(float (&s)[L::kRows][L::kKeys]) const {
    const float scale = kModified ? 1.0f : gcn::finite(args_.softmax_scale * kLog2e);
    float k_scale[L::kKeys];
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j)
      k_scale[j] = lds_.scales.k_scale[lane_in_group_ + j * kGroupLanes];
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      const float q_scale = lds_.scales.q_scale[tile_row_ + i * kGroups] * scale;
#pragma unroll
      for (int j = 0; j < L::kKeys; ++j) s[i][j] = s[i][j] * q_scale * k_scale[j];
    }
  }

  __device__ void change_scores(float (&s)[L::kRows][L::kKeys], int first_key) const {
    // Read anew: through the loop they would take 40 SGPRs, and bf16 spilled at head_dim 512.
    const auto& args = gcn::kernel_argument<FwdArgs>();
    const float factor = kF32 ? 1.0f : args.softmax_scale;
    const ScoreChanger<L::kRows, L::kKeys> change(args, visible_, item_.batch, item_.head_q,
                                                  factor);
    change(s, {item_.first_row + tile_row_, first_key + lane_in_group_});
  }

  // The sum of a row, which softmax has by now, is of what is dropped too.
  __device__ void drop(uint32_t (&p)[L::kRows][L::kKeys / per_word(E)], int first_key) const {
    if (args_.dropout.drop == 0) return;
    // Read anew: the seed and all that follows from it would take 30 SGPRs through the loop.
    const auto& args = gcn::kernel_argument<FwdArgs>();
    const DropoutMask mask(args.dropout, item_.batch, item_.head_q);
    drop_probabilities<T, E>(mask, gcn::opaque(item_.first_row + tile_row_),
                             first_key + lane_in_group_, p);
  }

  __device__ float o_factor() const {
    const float dropout =
        kModified && args_.dropout.drop != 0 ? gcn::kernel_argument<FwdArgs>().dropout.scale : 1.0f;
    return (kBf16 ? RowScale::inverse(v_exponent_) : 1.0f) * dropout;
  }

  __device__ Rows rows(const TensorView& x, int head, int first, int count, int columns) const {
    return {.base = head_base<E>(x, sequence_.batch, first, head),
            .row_stride = x.row_stride * halves_of(E),
            .count = count,
            .columns = columns * halves_of(E)};
  }

  // fp32: all that scores are multiplied by, but base 2 where they are changed before. fp16: with a
  // negative scale the largest score belongs to the least product, so Q changes its sign.
  __device__ float q_factor() const {
    if constexpr (kF32) return gcn::finite(args_.softmax_scale * (kModified ? 1.0f : kLog2e));
    return kScaled ? 1.0f : args_.softmax_scale;
  }

  // Positive (stage_q takes the sign) and finite for every softmax_scale: an infinite one would
  // turn scores of 0 into NaN, zero would do so with the -inf of a hidden key. 2^-100 is as good as
  // zero for every product of fp16 rows, and kSlack over it is still finite.
  __device__ static float base2_scale(float softmax_scale) {
    constexpr float least = 0x1p-100f;
    return gcn::max2(gcn::finite(__builtin_fabsf(softmax_scale) * kLog2e), least);
  }

  const FwdArgs& args_;
  WorkItem item_;
  Sequence sequence_;
  Visible visible_;
  LdsStorage<T, E>& lds_;
  Rows k_, v_;
  InFlight<T, T.block_n, T.head_dim * halves_of(E)> k_in_flight_;
  VInFlight<T, E> v_in_flight_;
  SoftmaxRow row_[L::kRows];
  Output o_;
  float scale_log2_;
  uint32_t v_exponent_;  // bf16: the largest exponent field of V so far
  int lane_in_group_;
  int tile_row_;  // the lane's first query row in the tile; the others follow kGroups apart
};

template <Tile T, Element E>
__device__ inline void fwd(const FwdArgs& args) {
  __shared__ LdsStorage<T, E> lds;
  static_assert(sizeof(lds) == lds_bytes(T, E), "LdsStorage and core/lds_budget.h disagree");
  static_assert(fits_lds(T, E), "the tile needs more than 64 KiB of LDS");
  ForwardBlock<T, E> block(args, lds);
  if (!block.start(item_of_grid(args, T.block_m))) return;
  block.attend(block.blocks());
  block.store();
}

}  // namespace flashattn
