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

template <Tile T, Mask mask>
class ForwardBlock {
  using L = Shape<T>;

 public:
  __device__ ForwardBlock(const FwdArgs& args, LdsStorage<T>& lds)
      : args_(args), item_(WorkItem::from_grid<T>(args)), lds_(lds) {}

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
    k_ = rows(args_.k, item_.head_kv, args_.seqlen_k, kAlignedK);
    v_ = rows(args_.v, item_.head_kv, args_.seqlen_k, kAlignedV);
    stage_q(lds_, rows(args_.q, item_.head_q, args_.seqlen_q, kAlignedQ), item_.first_row);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int c = 0; c < L::kCols; ++c) o_[i][c] = 0.0f;
  }

  __device__ void body() {
    scale_log2_ = base2_scale(args_.softmax_scale);
    const auto range = BlockRange::of<T>(visible(), item_.first_row);
    if (range.end > 0) in_flight_.load(k_, v_, 0);
    int block = 0;
    for (; block < range.unmasked_end; ++block) step</*masked=*/false>(block, range.end);
    for (; block < range.end; ++block) step</*masked=*/true>(block, range.end);
  }

  // Finite for every finite scale: an infinite one would turn scores of 0 into NaN.
  __device__ static float base2_scale(float softmax_scale) {
    constexpr float log2e = 1.44269504088896340736f, most = 3.402823466e38f;
    return __builtin_fmaxf(__builtin_fminf(softmax_scale * log2e, most), -most);
  }

  template <bool masked>
  __device__ void step(int block, int end) {
    __syncthreads();  // no wave reads the previous K and V any more (first step: none has)
    in_flight_.store(lds_);
    __syncthreads();
    if (block + 1 < end) in_flight_.load(k_, v_, (block + 1) * T.block_n);

    float s[L::kRows][L::kKeys];
    score_block(lds_, tile_row_, lane_in_group_, s);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
#pragma unroll
      for (int j = 0; j < L::kKeys; ++j) s[i][j] *= scale_log2_;
      if constexpr (masked) hide_unseen(s[i], tile_row_ + i * kGroups, block * T.block_n);
      const float rescale = state_[i].update(s[i]);
#pragma unroll
      for (int c = 0; c < L::kCols; ++c) o_[i][c] *= rescale;
    }
    store_p(lds_, tile_row_, lane_in_group_, s);
    accumulate_pv(lds_, tile_row_, lane_in_group_, o_);
  }

  __device__ void hide_unseen(float (&s)[L::kKeys], int tile_row, int first_key) const {
    const int seen = visible().key_end(item_.first_row + tile_row) - first_key - lane_in_group_;
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j)
      if (j * kGroupLanes >= seen) s[j] = -__builtin_inff();
  }

  __device__ void epilogue() const {
    const int64_t lse_row = int64_t{item_.batch} * args_.heads_q + item_.head_q;
    const OutputRows out = {.base = head_base(args_.o, item_.batch, item_.head_q),
                            .row_stride = args_.o.row_stride,
                            .lse = args_.lse + lse_row * args_.seqlen_q,
                            .count = args_.seqlen_q,
                            .aligned = (args_.aligned16 & kAlignedO) != 0};
    store_output<T>(out, item_.first_row + tile_row_, lane_in_group_, state_, o_);
  }

  __device__ Rows rows(const TensorView& x, int head, int count, Aligned16 bit) const {
    return {.base = head_base(x, item_.batch, head),
            .row_stride = x.row_stride,
            .count = count,
            .aligned = (args_.aligned16 & bit) != 0};
  }

  __device__ Visible<mask> visible() const { return {args_.seqlen_q, args_.seqlen_k}; }

  const FwdArgs& args_;
  WorkItem item_;
  LdsStorage<T>& lds_;
  Rows k_, v_;
  KvInFlight<T> in_flight_;
  SoftmaxState state_[L::kRows];
  float o_[L::kRows][L::kCols];
  float scale_log2_;
  int lane_in_group_;
  int tile_row_;  // the lane's first query row in the tile; the others follow kGroups apart
};

template <Tile T, Mask mask>
__device__ inline void fwd(const FwdArgs& args) {
  __shared__ LdsStorage<T> lds;
  static_assert(sizeof(lds) == lds_bytes(T), "LdsStorage and core/lds_budget.h disagree");
  ForwardBlock<T, mask>(args, lds).run();
}

}  // namespace flashattn
