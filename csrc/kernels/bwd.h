// The backward: dQ by blocks of queries, dK and dV by blocks of keys, P recomputed from the
// log-sum-exp (FlashAttention-2, Dao 2023, algorithm 2, cut in two so that no sum crosses
// workgroups: every result is deterministic, also dK and dV of a key head that several query heads
// read). docs/design/bwd.md.
#pragma once

#include "attention/bwd_side.h"
#include "attention/dropout.h"
#include "attention/hide.h"
#include "attention/row_statistics.h"
#include "attention/score_changes.h"
#include "attention/weight_scale.h"
#include "attention/work_item.h"
#include "core/bwd_args.h"
#include "gcn/buffer_narrow.h"
#include "gcn/math.h"

namespace flashattn {

template <Tile T, Element E, Gradient G>
class BackwardBlock {
  using L = Shape<T>;
  using QSide = BwdSide<T, kQSide<T>, E>;
  using VSide = BwdSide<T, kVSide<T>, E>;
  using Block = typename QSide::Products;
  using Weights = typename QSide::Weights;
  static constexpr bool kOwnsKeys = G == Gradient::dkdv;
  static constexpr bool kBf16 = E == Element::bf16, kF32 = E == Element::f32;
  static constexpr bool kModified = T.scores == Scores::modified;
  static constexpr bool kScaled = kBf16 || kModified;  // scores carry the scale before the shift
  // softmax_scale makes dQ and dK of dS: at the very end, or, in bf16 and fp32, before dS meets K
  // or Q, whose magnitudes can be such that only all three together are in fp32's range.
  static constexpr bool kScaleFirst = kF32 || (kBf16 && !kModified);
  // Kernels that would keep more of the argument in SGPRs than there are; the others gain 4 %.
  static constexpr bool kReadsAnew = kModified || ((kOwnsKeys || kBf16) && L::kRows >= 8);
  // P is 1 at most, and long rows have little in each entry: as dV's operand it uses fp16's upper
  // range (bf16: by p_scale_).
  static constexpr bool kRaisesP = kOwnsKeys && E == Element::f16;
  static constexpr float kPBits = kRaisesP ? 14.0f : 0.0f;
  static constexpr float kPUnit = kRaisesP ? 0x1p-14f : 1.0f;

 public:
  __device__ BackwardBlock(const BwdArgs& args, BwdStorage<T, E>& lds)
      : args_(args), fwd_(args.fwd), lds_(lds) {}

  __device__ __forceinline__ void run() {
    item_ = kOwnsKeys ? key_item_of_grid(fwd_, T.block_m) : item_of_grid(fwd_, T.block_m);
    if (item_.batch >= fwd_.batch) return;
    sequence_ = Sequence::of(fwd_, item_.batch);
    visible_ = {sequence_.seqlen_q, sequence_.seqlen_k,
                fwd_.top_left ? 0 : sequence_.seqlen_k - sequence_.seqlen_q, fwd_.window_left,
                fwd_.window_right};
    seen_ = kOwnsKeys ? visible_.transposed() : visible_;
    if (item_.first_row >= seen_.seqlen_q) return;
    prologue();
    body();
    epilogue();
  }

 private:
  __device__ __forceinline__ void prologue() {
    const int lane = gcn::lane_id();
    lane_in_group_ = lane % kGroupLanes;
    tile_row_ = gcn::wave_id() * T.rows_per_wave() + lane / kGroupLanes;
    scale_log2_ = kModified ? 1.0f : gcn::finite(kLog2e * fwd_.softmax_scale);
    if constexpr (kOwnsKeys) {
      stage_own(k_rows(fwd_.k, fwd_.head_dim), k_rows(fwd_.v, fwd_.head_dim_v));
    } else {
      const Rows dout = q_rows(args_.dout, item_.head_q, fwd_.head_dim_v);
      stage_own(q_rows(fwd_.q, item_.head_q, fwd_.head_dim), dout);
      own_statistics(dout);
    }
    q_side_.clear_sums();
    if constexpr (kOwnsKeys) v_side_.clear_sums();
  }

  __device__ void stage_own(const Rows& q_side, const Rows& v_side) {
    InFlight<T, T.block_m, T.head_dim * halves_of(E)> q;
    InFlight<T, T.block_m, T.head_dim_v * halves_of(E)> v;
    q.load(q_side, item_.first_row, true);
    v.load(v_side, item_.first_row, true);
    if constexpr (kBf16) {
      q.store(lds_.own_q, lds_.scales.own_q);
      v.store(lds_.own_v, lds_.scales.own_v);
    } else {
      q.store(lds_.own_q);
      v.store(lds_.own_v);
    }
  }

  // dQ: of the lane's own rows, also to memory for the kernel of dK and dV.
  __device__ void own_statistics(const Rows& dout) {
    row_deltas<T, E>(q_rows(fwd_.o, item_.head_q, fwd_.head_dim_v), dout, item_.first_row,
                     tile_row_, lane_in_group_, delta_);
    const int64_t first = statistics_of(item_.head_q);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) {
      const int row = item_.first_row + tile_row_ + i * kGroups;
      shift_[i] = 0.0f;
      if (row >= sequence_.seqlen_q) continue;
      shift_[i] = shift_of(fwd_.lse[first + row]);
      if (lane_in_group_ == 0) {
        args_.shift[first + row] = shift_[i];
        args_.delta[first + row] = delta_[i];
      }
    }
  }

  // dK and dV: of the queries of a block; 0 for those that do not exist, which are hidden. Only
  // loads: what they bring is not looked at before S is there.
  __device__ void load_statistics(int head_q, int first_query) {
    const int64_t first = statistics_of(head_q);
    const uint32_t bytes = sequence_.seqlen_q * sizeof(float);
    const auto shift = gcn::buffer(args().shift + first, bytes);
    const auto delta = gcn::buffer(args().delta + first, bytes);
    const int offset = (first_query + lane_in_group_) * static_cast<int>(sizeof(float));
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j) {
      constexpr int kApart = kGroupLanes * sizeof(float);
      shift_[j] = gcn::load_float(shift, offset + j * kApart);
      delta_[j] = gcn::load_float(delta, offset + j * kApart);
    }
  }

  // dK and dV: the block's queries in all heads that read the key head, one after the other.
  __device__ __forceinline__ void body() {
    const auto range = BlockRange::of<T>(seen_, item_.first_row);
    const int heads = kOwnsKeys ? fwd_.heads_q / fwd_.heads_kv : 1;
    int head = item_.head_q, block = range.begin;
    int steps = (range.end - range.begin) * heads;
    load_q_side(head, block, steps > 0);
#pragma unroll 1
    for (; steps > 0; --steps) {
      step(head, block, range.is_whole(block));
      const bool ends = ++block == range.end;
      block = ends ? range.begin : block;
      head += ends ? 1 : 0;
      // The next block's loads go beside the last product.
      static_for<QSide::kParts>([&](auto part) {
        if constexpr (part > 0) turn([&] { q_side_.template store<part>(lds_.other_q_pairs); });
        if constexpr (part == QSide::kParts - 1) load_q_side(head, block, steps > 1);
        q_side_.template accumulate<part>(ds_, lds_.other_q_pairs, lds_.weights, tile_row_,
                                          lane_in_group_, /*spoils=*/false);
      });
    }
  }

  // All but the last product.
  __device__ __forceinline__ void step(int head, int block, bool whole) {
    Block p, ds;
    [[maybe_unused]] Block slope;
    const int first = block * T.block_n;

    // Nobody reads the block before's factors any more: they are for S and dP, and for their use.
    if constexpr (kBf16) q_side_.normalise(lds_.scales.other_q);
    clear(p);
    static_for<QSide::kParts>([&](auto part) {
      turn([&] { q_side_.template store<part>(lds_.other_q); });
      if constexpr (part == 0) {
        load_v_side(head, block);
        if constexpr (kOwnsKeys) load_statistics(head, first);
      }
      QSide::template multiply<part>(lds_.own_q, lds_.other_q, tile_row_, lane_in_group_, p);
    });
    if constexpr (kBf16) undo_scales(p, lds_.scales.own_q, lds_.scales.other_q, scale_log2_);
    if constexpr (kModified) change_scores(p, slope, head, first);
    probabilities(p, first, whole);

    if constexpr (kBf16) v_side_.normalise(lds_.scales.other_v);
    clear(ds);
    static_for<VSide::kParts>([&](auto part) {
      turn([&] { v_side_.template store<part>(lds_.other_v); });
      VSide::template multiply<part>(lds_.own_v, lds_.other_v, tile_row_, lane_in_group_, ds);
    });
    if constexpr (kBf16)
      undo_scales(ds, lds_.scales.own_v, lds_.scales.other_v,
                  kScaleFirst ? fwd_.softmax_scale : 1.0f);
    if constexpr (kModified) drop(p, ds, head, first);
    const float delta_scale = kBf16 && kScaleFirst ? fwd_.softmax_scale : 1.0f;
    for_each(ds, [&](float& x, int i, int j) {
      const float weight = kModified ? __builtin_fabsf(p[i][j]) : p[i][j];
      x = gcn::multiply_zero_wins(weight, x - delta_[kOwnsKeys ? j : i] * delta_scale);
    });
    if constexpr (kModified) {
      if constexpr (!kOwnsKeys) add_to_bias_gradient(ds, first);
      for_each(ds, [&](float& x, int i, int j) { x *= slope[i][j]; });
    }

    [[maybe_unused]] Weights pairs;
    if constexpr (kOwnsKeys && kModified)
      for_each(p, [](float& x, int, int) { x = x < 0.0f ? 0.0f : x; });
    if constexpr (kOwnsKeys) pack_p(p, pairs);
    pack_ds(ds);
    if constexpr (kOwnsKeys) {
      const bool spoils = (kModified || !whole) && is_spoiled();
      static_for<VSide::kParts>([&](auto part) {
        // In fp32 rows are in LDS as they were for dP.
        if constexpr (!kF32 || VSide::kParts > 1)
          turn([&] { v_side_.template store<part>(lds_.other_v_pairs); });
        v_side_.template accumulate<part>(pairs, lds_.other_v_pairs, lds_.weights, tile_row_,
                                          lane_in_group_, spoils);
      });
    }
    turn([&] { q_side_.template store<0>(lds_.other_q_pairs); });
  }

  // The buffer of the other side changes hands.
  template <class Store>
  __device__ static void turn(Store store) {
    gcn::workgroup_barrier();  // no wave reads what is there any more
    store();
    gcn::workgroup_barrier();
  }

  // What a step reads of the argument.
  __device__ const BwdArgs& args() const {
    if constexpr (kReadsAnew) return gcn::kernel_argument<BwdArgs>();
    return args_;
  }

  __device__ __forceinline__ void load_q_side(int head, int block, bool exists) {
    const FwdArgs& fwd = args().fwd;
    const Rows rows = kOwnsKeys ? q_rows(fwd.q, head, fwd.head_dim) : k_rows(fwd.k, fwd.head_dim);
    q_side_.load(rows, block, exists);
  }

  __device__ __forceinline__ void load_v_side(int head, int block) {
    const BwdArgs& a = args();
    const Rows rows =
        kOwnsKeys ? q_rows(a.dout, head, a.fwd.head_dim_v) : k_rows(a.fwd.v, a.fwd.head_dim_v);
    v_side_.load(rows, block, true);
  }

  __device__ void change_scores(Block& s, Block& slope, int head, int first) const {
    const ScoreChanger<L::kRows, L::kKeys, kOwnsKeys> change(args().fwd, visible_, item_.batch,
                                                             head, fwd_.softmax_scale);
    const int own = item_.first_row + tile_row_, other = first + lane_in_group_;
    change(s, slope, kOwnsKeys ? ScorePlace{other, own} : ScorePlace{own, other});
  }

  // dP of what the forward dropped is 0, and its P, which dS still needs, gets a minus; dP of the
  // rest is that of a P that was scaled up.
  __device__ void drop(Block& p, Block& dp, int head, int first) const {
    const Dropout& dropout = args().fwd.dropout;
    if (dropout.drop == 0) return;
    const DropoutMask mask(dropout, item_.batch, head);
    const int own = gcn::opaque(item_.first_row + tile_row_);
    const int other = first + gcn::opaque(lane_in_group_);
    const float scale = dropout.scale;
    const auto each = [&](int i, int j, bool kept) {
      dp[i][j] = gcn::multiply_zero_wins(kept ? scale : 0.0f, dp[i][j]);
      p[i][j] = kept ? p[i][j] : -p[i][j];
    };
    if constexpr (kOwnsKeys)
      for_each_kept_transposed<T>(mask, other, own, each);
    else
      for_each_kept<T>(mask, own, other, each);
  }

  __device__ void add_to_bias_gradient(const Block& ds, int first_key) const {
    const BwdArgs& a = args();
    if (a.dbias == nullptr) return;
    const int row = item_.first_row + gcn::opaque(tile_row_);
    const int key = first_key + gcn::opaque(lane_in_group_);
    float* const head =
        a.dbias + item_.batch * a.dbias_batch_stride + item_.head_q * a.dbias_head_stride;
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int j = 0; j < L::kKeys; ++j) {
        const int r = row + i * kGroups, k = key + j * kGroupLanes;
        if (r < sequence_.seqlen_q && k < sequence_.seqlen_k)
          head[int64_t{r} * a.fwd.seqlen_k + k] += ds[i][j];
      }
  }

  // A mask hides exponents, not scores: softmax_scale can be negative.
  __device__ void probabilities(Block& s, int first, bool whole) const {
    for_each(s, [&](float& x, int i, int j) {
      const float shift = shift_[kOwnsKeys ? j : i] - kPBits;
      x = kScaled ? x - shift : __builtin_fmaf(x, scale_log2_, -shift);
    });
    if (!whole) hide_unseen<T>(s, seen_, item_.first_row, tile_row_, first, lane_in_group_);
    for_each(s, [](float& x, int, int) { x = gcn::exp2(x); });
  }

  __device__ void pack_p(Block& p, Weights& pairs) {
    if constexpr (kBf16) {
      multiply_columns(p, lds_.scales.other_v);
      p_scale_.follow(p, v_side_.sums());
      p_scale_.pack(p, pairs);
    } else if constexpr (kF32) {
      for_each(p, [&](float& x, int i, int j) { pairs[i][j] = __builtin_bit_cast(uint32_t, x); });
    } else {
      for_each(p, [&](float&, int i, int j) {
        if (j % 2 == 0) pairs[i][j / 2] = gcn::as_bits(gcn::to_half2(p[i][j], p[i][j + 1]));
      });
    }
  }

  // fp32 has the range for dS as it is.
  __device__ void pack_ds(Block& ds) {
    if constexpr (kF32) {
      const float scale = kScaleFirst ? fwd_.softmax_scale : 1.0f;
      for_each(ds,
               [&](float& x, int i, int j) { ds_[i][j] = __builtin_bit_cast(uint32_t, x* scale); });
    } else {
      if constexpr (kBf16) multiply_columns(ds, lds_.scales.other_q);
      ds_scale_.follow(ds, q_side_.sums());
      ds_scale_.pack(ds, ds_);
    }
  }

  // bf16: of the products of rows that were normalised.
  __device__ void undo_scales(Block& s, const float* own, const float* other, float factor) const {
    const int lane = gcn::opaque(lane_in_group_), row = gcn::opaque(tile_row_);
    for_each(s, [&](float& x, int i, int j) {
      x = x * (own[row + i * kGroups] * factor) * other[lane + j * kGroupLanes];
    });
  }

  // bf16: weights of rows that were normalised.
  __device__ void multiply_columns(Block& weight, const float* scale) const {
    const int lane = gcn::opaque(lane_in_group_);
    for_each(weight, [&](float& x, int, int j) { x *= scale[lane + j * kGroupLanes]; });
  }

  // dK and dV: whether a query of the block has NaN or inf in dO. Then its delta is one of them,
  // too.
  __device__ bool is_spoiled() const {
    bool finite = true;
#pragma unroll
    for (const float delta : delta_) finite = finite && __builtin_fabsf(delta) <= gcn::kLargest;
    return gcn::any_lane(!finite);
  }

  __device__ __forceinline__ void epilogue() const {
    // Opaque: which rows exist is not to be kept from the prologue on, in SGPRs.
    const int first_row = gcn::opaque(item_.first_row + tile_row_);
    float factor[L::kRows];
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
      factor[i] = (kF32 ? 1.0f : ds_scale_.inverse_of(i)) *
                  (kScaleFirst ? 1.0f : kPUnit * fwd_.softmax_scale);
    const Rows q_side =
        kOwnsKeys ? k_rows(args_.dk, fwd_.head_dim) : q_rows(args_.dq, item_.head_q, fwd_.head_dim);
    q_side_.store_sums(q_side, first_row, lane_in_group_, factor);
    if constexpr (kOwnsKeys) {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i)
        factor[i] = (kBf16 ? p_scale_.inverse_of(i) : kPUnit) * kept_scale();
      v_side_.store_sums(k_rows(args_.dv, fwd_.head_dim_v), first_row, lane_in_group_, factor);
    }
  }

  // Of P that dropout kept.
  __device__ float kept_scale() const {
    const Dropout& dropout = args().fwd.dropout;
    return kModified && dropout.drop != 0 ? dropout.scale : 1.0f;
  }

  __device__ Rows q_rows(const TensorView& x, int head, int columns) const {
    return {.base = head_base<E>(x, sequence_.batch, sequence_.first_q, head),
            .row_stride = x.row_stride * halves_of(E),
            .count = sequence_.seqlen_q,
            .columns = columns * halves_of(E)};
  }

  __device__ Rows k_rows(const TensorView& x, int columns) const {
    return {.base = head_base<E>(x, sequence_.batch, sequence_.first_k, item_.head_kv),
            .row_stride = x.row_stride * halves_of(E),
            .count = sequence_.seqlen_k,
            .columns = columns * halves_of(E)};
  }

  __device__ int64_t statistics_of(int head_q) const {
    const FwdArgs& fwd = args().fwd;
    return sequence_.batch * fwd.lse_batch_stride + head_q * fwd.lse_head_stride +
           sequence_.first_q;
  }

  const BwdArgs& args_;
  const FwdArgs& fwd_;
  WorkItem item_;
  Sequence sequence_;
  Visible visible_;
  Visible seen_;  // of the own rows: by queries the keys, by keys the queries
  BwdStorage<T, E>& lds_;
  QSide q_side_;  // its sums are dQ or dK
  VSide v_side_;  // its are dV
  Weights ds_;
  float shift_[kOwnsKeys ? L::kKeys : L::kRows];  // of queries: own ones, or those of the block
  float delta_[kOwnsKeys ? L::kKeys : L::kRows];
  WeightScale<L::kRows> ds_scale_, p_scale_;
  float scale_log2_;
  int lane_in_group_;
  int tile_row_;  // the lane's first own row in the tile; the others follow kGroups apart
};

// Inlined whatever its size: as a call it would get its argument through scratch.
template <Tile T, Element E, Gradient G>
[[gnu::always_inline]] __device__ inline void bwd(const BwdArgs& args) {
  __shared__ BwdStorage<T, E> lds;
  static_assert(sizeof(lds) == bwd_lds_budget(T, E).total(),
                "BwdStorage and core/lds_budget.h disagree");
  static_assert(sizeof(lds) <= kLdsBytesPerWorkgroup, "the tile needs more than 64 KiB of LDS");
  BackwardBlock<T, E, G>(args, lds).run();
}

}  // namespace flashattn
