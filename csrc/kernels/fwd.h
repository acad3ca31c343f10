// The forward: O = softmax(scale * Q K^T) V and LSE, one query block a workgroup, K and V streamed
// (FlashAttention-2, Dao 2023, algorithm 1).
#pragma once

#include "attention/block_range.h"
#include "attention/epilogue.h"
#include "attention/lds_storage.h"
#include "attention/pv.h"
#include "attention/qk.h"
#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "attention/tile_io.h"
#include "attention/work_item.h"
#include "core/fwd_args.h"
#include "gcn/wave.h"

namespace flashattn {

template <Tile T>
class ForwardBlock {
  using L = Shape<T>;

 public:
  __device__ ForwardBlock(const FwdArgs& args, LdsStorage<T>& lds)
      : args_(args),
        item_(WorkItem::from_grid<T>(args)),
        visible_{args.seqlen_q, args.seqlen_k, args.window_left, args.window_right},
        lds_(lds) {}

  __device__ void run() {
    if (item_.batch >= args_.batch) return;
    prologue();
    body();
    epilogue();
  }

 private:
  __device__ void prologue() {
    const int lane = gcn::lane_id();
    lane_in_group_ = lane % kGroupLanes;
    tile_row_ = gcn::wave_id() * T.rows_per_wave() + lane / kGroupLanes;
    scale_log2_ = base2_scale(args_.softmax_scale);
    k_ = rows(args_.k, item_.head_kv, args_.seqlen_k, args_.head_dim);
    v_ = rows(args_.v, item_.head_kv, args_.seqlen_k, args_.head_dim_v);
    stage_q(lds_, rows(args_.q, item_.head_q, args_.seqlen_q, args_.head_dim), item_.first_row,
            args_.softmax_scale < 0.0f);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int c = 0; c < L::kCols; ++c) o_[i][c] = 0.0f;
  }

  __device__ void body() {
    const auto range = BlockRange::of<T>(visible_, item_.first_row);
    load_first(range.begin, range.begin < range.end);
#pragma unroll 1
    for (int block = range.begin; block < range.end; ++block)
      step(block, range.is_whole(block), block + 1 < range.end);
  }

  // What a step needs at its start; nothing is read if there is no such step, but the registers are
  // written: values that might survive from the step before would occupy them all through it.
  __device__ void load_first(int block, bool exists) {
    k_in_flight_.load(k_, block * T.block_n, exists);
    if constexpr (T.kv == KvBuffers::apart) v_in_flight_.load(v_, block * T.block_n, exists);
  }

  __device__ void step(int block, bool whole, bool more) {
    float s[L::kRows][L::kKeys];
    uint32_t p[L::kRows][L::kKeys / 2];
    BlockSoftmax<T, L::kRows, L::kKeys, L::kCols> softmax(scale_log2_, row_);

    __syncthreads();  // no wave reads the previous K and V any more (first step: none has)
    k_in_flight_.store(lds_.kv.k);
    if constexpr (T.kv == KvBuffers::apart) v_in_flight_.store(lds_.kv.v);
    __syncthreads();
    if constexpr (T.kv == KvBuffers::apart) {
      load_first(block + 1, more);
    } else {
      v_in_flight_.load(v_, block * T.block_n, true);
    }
    score_block(lds_, tile_row_, lane_in_group_, s);
    if (!whole) hide_unseen(s, block * T.block_n);
    softmax.raise_limits(s, o_);
    softmax.probabilities(s, p);
    if constexpr (T.kv == KvBuffers::in_turns) {
      __syncthreads();  // no wave reads K any more
      v_in_flight_.store(lds_.kv.v);
      __syncthreads();
      load_first(block + 1, more);
    }
#pragma unroll
    for (int part = 0; part < T.block_n / T.p_keys; ++part) {
      store_p(lds_, tile_row_, lane_in_group_, part, p);
      accumulate_pv(lds_, tile_row_, lane_in_group_, part, o_);
    }
  }

  __device__ void hide_unseen(float (&s)[L::kRows][L::kKeys], int first_key) const {
    // Of the row over the key, in the block. Opaque: all that follows from it alone would be moved
    // out of the loop, into registers that are not there.
    const int ahead = gcn::opaque(tile_row_ - lane_in_group_);
    const int diagonal = first_key - item_.first_row - (args_.seqlen_k - args_.seqlen_q);
    hide(s,
         [&](int down, int right) { return ahead + down - right < diagonal - args_.window_right; });
    if (args_.window_left < kMaxSeqlen)
      hide(s, [&](int down, int right) {
        return ahead + down - right > diagonal + args_.window_left;
      });
    if (args_.seqlen_k - first_key < T.block_n)
      hide(s, [&](int, int right) { return lane_in_group_ >= args_.seqlen_k - first_key - right; });
  }

  // Row and key of a score are given relative to the lane's first ones.
  template <class Unseen>
  __device__ static void hide(float (&s)[L::kRows][L::kKeys], Unseen unseen) {
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int j = 0; j < L::kKeys; ++j)
        if (unseen(i * kGroups, j * kGroupLanes)) s[i][j] = -__builtin_inff();
  }

  __device__ void epilogue() const {
    const int64_t lse_row = int64_t{item_.batch} * args_.heads_q + item_.head_q;
    const OutputRows out = {.base = head_base(args_.o, item_.batch, item_.head_q),
                            .row_stride = args_.o.row_stride,
                            .lse = args_.lse + lse_row * args_.seqlen_q,
                            .count = args_.seqlen_q,
                            .columns = args_.head_dim_v};
    store_output<T>(out, item_.first_row + tile_row_, lane_in_group_, scale_log2_, row_, o_);
  }

  __device__ Rows rows(const TensorView& x, int head, int count, int columns) const {
    return {.base = head_base(x, item_.batch, head),
            .row_stride = x.row_stride,
            .count = count,
            .columns = columns};
  }

  // Positive (stage_q takes the sign) and finite for every softmax_scale: an infinite one would
  // turn scores of 0 into NaN, zero would do so with the -inf of a hidden key. 2^-100 is as good as
  // zero for every product of fp16 rows, and kSlack over it is still finite.
  __device__ static float base2_scale(float softmax_scale) {
    constexpr float log2e = 1.44269504088896340736f, most = 3.402823466e38f, least = 0x1p-100f;
    return gcn::max2(__builtin_fminf(__builtin_fabsf(softmax_scale) * log2e, most), least);
  }

  const FwdArgs& args_;
  WorkItem item_;
  Visible visible_;
  LdsStorage<T>& lds_;
  Rows k_, v_;
  InFlight<T, T.block_n, T.head_dim> k_in_flight_;
  VInFlight<T> v_in_flight_;
  SoftmaxRow row_[L::kRows];
  float o_[L::kRows][L::kCols];
  float scale_log2_;
  int lane_in_group_;
  int tile_row_;  // the lane's first query row in the tile; the others follow kGroups apart
};

template <Tile T>
__device__ inline void fwd(const FwdArgs& args) {
  __shared__ LdsStorage<T> lds;
  static_assert(sizeof(lds) == lds_bytes(T), "LdsStorage and core/lds_budget.h disagree");
  ForwardBlock<T>(args, lds).run();
}

}  // namespace flashattn
