// Decode: a few query rows against a long KV cache (flash-decoding, Dao et al. 2023). A workgroup
// takes the rows that share a key head, and a split of the keys; its waves take steps of the split
// in turn, each straight from memory to registers, and join their results at the end. More than
// one split leaves partial results for kernels/join_splits.h.
#pragma once

#include "attention/block_range.h"
#include "attention/cache_rows.h"
#include "attention/decode_products.h"
#include "attention/decode_shape.h"
#include "attention/epilogue.h"
#include "attention/merge.h"
#include "attention/score_changes.h"
#include "core/decode_args.h"
#include "core/grid.h"
#include "gcn/dpp.h"
#include "gcn/scalar_io.h"
#include "gcn/wave.h"

namespace flashattn {

template <DecodeTile T, Element E, KvFormat F>
class DecodeBlock {
  using S = DecodeShape<T>;
  using Products = DecodeProducts<T, E>;
  using Numbers = KvNumbers<F>;
  using KeyChunk = KvChunk<F, T.k_columns>;
  using ValueChunk = KvChunk<F, T.v_columns>;
  static constexpr bool kScaled = F != KvFormat::plain;
  // Parts of a chunk of K are neighbours where all of it is one load, else a row's lanes apart
  // (ChunkReader). Neighbours may be one of the head's columns and one of what lies past them.
  static constexpr bool kNeighbours = S::kParts > 1 && sizeof(KeyChunk) <= 16;
  static constexpr bool kPartsPastHead = kNeighbours && !Numbers::kFinite;
  static constexpr float kMostWeight = 1 << static_cast<int>(kSlack);
  // Parts of Q under way. Two cost bf16 at D256 the registers of a second workgroup on the CU.
  static constexpr int kAhead = E == Element::bf16 ? 1 : 2;
  static constexpr bool kLatent = T.rope > 0;  // keys are values too

 public:
  __device__ DecodeBlock(const DecodeArgs& args, DecodeStorage<T, E>& lds)
      : args_(&args),
        lds_(lds),
        item_(DecodeItem::from_grid<T>(args)),
        lane_{gcn::lane_id()},
        wave_(gcn::wave_id()) {}

  __device__ void run() {
    if (item_.batch >= args_->batch) return;
    ratio_ = args_->heads_q / args_->heads_kv;
    int seqlen_q = args_->seqlen_q;
    if (const int32_t* const ends = args_->cu_seqlens_q; ends != nullptr) {
      item_.first_q = gcn::load_scalar(ends + item_.batch);
      seqlen_q = gcn::load_scalar(ends + item_.batch + 1) - item_.first_q;
    }
    const int rows_left = seqlen_q * ratio_ - item_.first_row;
    if (rows_left <= 0) return;
    item_.rows = rows_left < T.rows ? rows_left : T.rows;
    if (threadIdx.x == 0) lds_.item = item_;
    const CacheRows cache(args_->cache, item_.batch);
    const int seqlen_k = cache.count(item_.batch, args_->seqlen_new);
    visible_ = {seqlen_q, seqlen_k, seqlen_k - seqlen_q, args_->window_left, args_->window_right};
    choose_steps();
    if (args_->at_once > 0 && item_.is_first_of_sequence() && threadIdx.x == 0)
      args_->partials.of_sequence[item_.batch] = {item_.unit(*args_), item_.splits};
    stage_q();
    describe_rows();
    gcn::workgroup_barrier();
    body(cache);
    gcn::workgroup_barrier();
    args_ = &gcn::kernel_argument<DecodeArgs>();
    item_ = lds_.item.uniform();
    ratio_ = args_->heads_q / args_->heads_kv;
    join();
  }

 private:
  // The steps of this split, of all those in which some row of the tile sees a key.
  __device__ void choose_steps() {
    const VisibleSteps<T> steps(visible_, item_.first_row / ratio_,
                                (item_.first_row + item_.rows - 1) / ratio_);
    end_key_ = steps.end_key;
    const int share = ceil_div(steps.count, item_.splits);
    first_step_ = steps.begin + item_.split * share;
    const int left = steps.count - item_.split * share;
    end_step_ = first_step_ + (left < share ? (left > 0 ? left : 0) : share);
  }

  // By elements, which any alignment allows, all under way at once; columns past the head's are
  // zeros.
  __device__ void stage_q() {
    constexpr int row_chunks = T.columns_q() / 8;
    for (int i = static_cast<int>(threadIdx.x); i < T.rows * row_chunks; i += T.threads()) {
      const int row = i / row_chunks, chunk = i % row_chunks, last = args_->head_dim - 1;
      const gcn::half* const from = row_of(args_->q, row < item_.rows ? row : 0);
      gcn::half8 x;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int column = chunk * 8 + e;
        const gcn::half held = from[column < last ? column : last];
        x[e] = column <= last ? held : gcn::half{};
      }
      Products::store_q(lds_.loop, row, part_of(chunk), x);
    }
  }

  // Which part of all first, all second, .. of chunks holds columns [8 i, 8 i + 8).
  __device__ static int part_of(int i) {
    return kNeighbours ? i % S::kParts * S::kLanes + i / S::kParts : i;
  }

  // The scale, and the lane's row of each pass: the key that it is level with. What rows that do
  // not exist compute is not stored.
  __device__ void describe_rows() {
    scale_log2_ = gcn::ldexp(gcn::finite(args_->softmax_scale * kLog2e), Numbers::kExponent);
    in_head_ = lane_.chunk() * T.k_columns + 8 < args_->head_dim ? ~0u : 0u;
    modified_ = gcn::uniform(args_->softcap != 0.0f || args_->alibi_slopes != nullptr);
#pragma unroll
    for (int pass = 0; pass < S::kPasses; ++pass) {
      const int row = pass * S::kPassRows + lane_.row();
      const int level = token_of(row) + visible_.diagonal, right = level + visible_.window_right;
      first_[pass] = level - visible_.window_left;
      last_[pass] = right < visible_.seqlen_k ? right : visible_.seqlen_k - 1;
      slope_[pass] = 0.0f;
      if (args_->alibi_slopes != nullptr && row < item_.rows)
        slope_[pass] =
            args_->alibi_slopes[item_.batch * args_->alibi_batch_stride + head_of(row)] * kLog2e;
      limit_[pass] = value_limit_[pass] = -__builtin_inff();
      to_values_[pass] = 1.0f;
      sum_[pass] = 0.0f;
    }
#pragma unroll
    for (int r = 0; r < T.rows; ++r)
#pragma unroll
      for (int e = 0; e < S::kColumns; ++e) o_[r][e] = 0.0f;
  }

  __device__ void body(const CacheRows& cache) {
    const ChunkReader<T, F, S::kOfKeys> k_reader(args_->cache.k, item_.head_kv,
                                                 kLatent ? T.head_dim : args_->head_dim,
                                                 lane_.chunk(), lane_.group());
    const ChunkReader<T, F, S::kOfValues> v_reader(args_->cache.v, item_.head_kv, args_->head_dim_v,
                                                   lane_.value_chunk(), lane_.value_group());
    // Of this split alone: what another one reads is no concern of this one.
    const int end = end_step_ * S::kStepKeys < end_key_ ? end_step_ * S::kStepKeys : end_key_;
    const auto item = [&](int step) { return cache.item(step * S::kStepKeys, end); };
    const auto place = [&](int step, int of_item) {
      return cache.place(step * S::kStepKeys, end, of_item);
    };
    if constexpr (Numbers::kBias != 0.0f) measure_bias();
    KeyChunk k[S::kKeys];
    ValueChunk v[S::kValues];  // kLatent: the next keys
    int step = first_step_ + wave_;
    CachePlace at = place(step, item(step));
    k_reader.read(at, k);
    if constexpr (kLatent) {
      read_rope(at);
    } else {
      read_scales(at);
      v_reader.read(at, v);
    }
    int next_item = item(step + T.waves);
#pragma unroll 1
    for (; step < end_step_; step += T.waves) {
      at = place(step + T.waves, next_item);
      next_item = item(step + 2 * T.waves);
      if constexpr (kLatent) k_reader.read(at, v);
      gcn::half8 keys[S::kKeys * S::kParts];
      widen(k, keys);
#pragma unroll
      for (int pass = 0; pass < S::kPasses; ++pass) {
        float s[S::kPassRows * S::kKeys];
        Products::template scores<kAhead>(lds_.loop, pass * S::kPassRows, lane_.chunk(), keys, s);
        if constexpr (kLatent) add_rope(pass * S::kPassRows, s);
        if (pass == S::kPasses - 1) {
          if constexpr (kLatent)
            read_rope(at);
          else
            k_reader.read(at, k);
        }
        float score[S::kScores];
        gcn::share_sums<S::kFold>(s, lane_.id, score);
        soften(pass, step * S::kStepKeys, score);
      }
      gcn::wave_fence();
      const auto& values = of_step(k, v);
      Products::template accumulate<Numbers>(lds_.loop, wave_, lane_.value_group(), values, o_);
      gcn::wave_fence();
      if constexpr (kLatent) {
#pragma unroll
        for (int u = 0; u < S::kKeys; ++u) k[u] = v[u];
      } else {
        read_scales(at);
        v_reader.read(at, v);
      }
    }
  }

  __device__ void read_rope(const CachePlace& at) {
    const KvCache& cache = gcn::kernel_argument<DecodeArgs>().cache;
    RopeReader<T>(cache.k, item_.head_kv, lane_.id).read(at, rope_);
  }

  // What the rotary columns add to the lane's shares: a pair of them, or zeros.
  __device__ void add_rope(int first_row, float (&s)[S::kPassRows * S::kKeys]) const {
    constexpr int pairs = T.rope / 2;
    const int pair = T.head_dim / 2 + lane_.id % pairs;
#pragma unroll
    for (int i = 0; i < S::kPassRows; ++i)
#pragma unroll
      for (int u = 0; u < S::kKeys; ++u) {
        float& share = s[i * S::kKeys + u];
        share = Products::add_pair(lds_.loop, first_row + i, pair, rope_[u], share);
      }
  }

  __device__ void widen(const KeyChunk (&k)[S::kKeys],
                        gcn::half8 (&keys)[S::kKeys * S::kParts]) const {
    using Part = KvChunk<F, 8>;
    struct Parts {
      Part part[S::kParts];
    };
#pragma unroll
    for (int u = 0; u < S::kKeys; ++u) {
      auto parts = __builtin_bit_cast(Parts, k[u]);
      if constexpr (kPartsPastHead) parts.part[1] &= in_head_;
#pragma unroll
      for (int i = 0; i < S::kParts; ++i) keys[u * S::kParts + i] = Numbers::widen(parts.part[i]);
    }
  }

  // Chunks of the values of a step.
  __device__ static const auto& of_step(const KeyChunk (&k)[S::kKeys],
                                        const ValueChunk (&v)[S::kValues]) {
    if constexpr (kLatent)
      return k;
    else
      return v;
  }

  // Those of the keys of the lane's scores, and of their values.
  __device__ void read_scales(const CachePlace& at) {
    if constexpr (kScaled) {
      // Not kept from the step before: SGPRs are full.
      const KvCache& cache = gcn::kernel_argument<DecodeArgs>().cache;
      ScaleReader(cache.k_scale, item_.head_kv).read(at, lane_.key(0), S::kGroups, k_scale_);
      ScaleReader(cache.v_scale, item_.head_kv).read(at, lane_.key(0), S::kGroups, v_scale_);
    }
  }

  // Scores of one row become probabilities, and weights of the keys' values, which go to LDS.
  __device__ void soften(int pass, int first_key, float (&score)[S::kScores]) {
#pragma unroll
    for (int j = 0; j < S::kScores; ++j) {
      float product = gcn::sum_rows<S::kLanes>(score[j]);
      if constexpr (Numbers::kBias != 0.0f) product -= bias_[pass];
      if constexpr (kScaled) product *= k_scale_[j];
      score[j] = product * scale_log2_;
    }
    if (modified_ != 0) [[unlikely]]
      modify(pass, first_key, score);
#pragma unroll
    for (int j = 0; j < S::kScores; ++j) {
      const int key = first_key + lane_.key(j);
      const bool seen = key >= first_[pass] && key <= last_[pass];
      score[j] = seen ? score[j] : -__builtin_inff();
    }
    float p[S::kScores], weight[S::kScores];
    if constexpr (kScaled) {
      if (gcn::any_lane(exponentiate(pass, score, p, weight) > kMostWeight)) [[unlikely]] {
        raise_limits(pass, score);
        exponentiate(pass, score, p, weight);
      }
    } else {  // sooner, before an exponential's 16 clocks
      if (gcn::any_lane(most_of(score) > limit_[pass])) [[unlikely]]
        raise_limits(pass, score);
      exponentiate(pass, score, p, weight);
    }
#pragma unroll
    for (int j = 0; j < S::kScores; ++j) {
      sum_[pass] += p[j];
      Products::store_p(lds_.loop, wave_, lane_.key(j), pass * S::kPassRows + lane_.row(),
                        weight[j]);
    }
  }

  // p: probabilities over the row's. weight: what the key's value counts, so times its scale, and
  // with a shift of its own that keeps weights in fp16's range. Returns the largest of all.
  __device__ float exponentiate(int pass, const float (&score)[S::kScores], float (&p)[S::kScores],
                                float (&weight)[S::kScores]) const {
    const float shift = shift_of(limit_[pass]);
    float most = 0.0f;
#pragma unroll
    for (int j = 0; j < S::kScores; ++j) {
      p[j] = gcn::exp2(score[j] - shift);
      most = gcn::max2(most, p[j]);
      weight[j] = p[j];
      if constexpr (kScaled) {
        // Before the first value that is not 0 a scale overflows, also that of a masked key.
        weight[j] = gcn::multiply_zero_wins(p[j], v_scale_[j] * to_values_[pass]);
        most = gcn::max2_abs(most, weight[j]);
      }
    }
    return most;
  }

  __device__ static float most_of(const float (&score)[S::kScores]) {
    float most = score[0];
#pragma unroll
    for (int j = 1; j < S::kScores; ++j) most = gcn::max2(most, score[j]);
    return most;
  }

  // What the bias of keys adds to the products of a row: its product with a key of nothing else.
  __device__ void measure_bias() {
    gcn::half8 keys[S::kKeys * S::kParts];
    for (gcn::half8& part : keys) part = gcn::half8{} + static_cast<gcn::half>(Numbers::kBias);
#pragma unroll
    for (int pass = 0; pass < S::kPasses; ++pass) {
      float s[S::kPassRows * S::kKeys], sums[S::kScores];
      Products::template scores<kAhead>(lds_.loop, pass * S::kPassRows, lane_.chunk(), keys, s);
      gcn::share_sums<S::kFold>(s, lane_.id, sums);
      bias_[pass] = gcn::sum_rows<S::kLanes>(sums[0]);
    }
  }

  __device__ void modify(int pass, int first_key, float (&score)[S::kScores]) const {
    // The key that the row is level with, as it was before first_ was made of it.
    const int level = first_[pass] + gcn::kernel_argument<DecodeArgs>().window_left;
#pragma unroll
    for (int j = 0; j < S::kScores; ++j)
      score[j] = modified(score[j], level - first_key - lane_.key(j), slope_[pass]);
  }

  // Softcap, then ALiBi. Reads its arguments when it needs them: SGPRs are full.
  __device__ static float modified(float x, int distance, float slope) {
    const float softcap = gcn::kernel_argument<DecodeArgs>().softcap;
    if (softcap != 0.0f) {
      const float e = gcn::exp2(x * 2.0f * gcn::reciprocal(softcap));
      x = softcap * kLog2e * (1.0f - 2.0f * gcn::reciprocal(e + 1.0f));
    }
    return x - slope * static_cast<float>(distance < 0 ? -distance : distance);
  }

  static __device__ float shift_of(float limit) {
    return gcn::max2(limit - kSlack, -gcn::kLargest);  // finite before the first key
  }

  // Rare: rows of the pass whose scores, or these with the values' scales, exceed their limit get a
  // new one, and sums follow.
  __device__ void raise_limits(int pass, const float (&score)[S::kScores]) {
    float factor = raised(limit_[pass], most_of(score));
    sum_[pass] *= factor;
    if constexpr (kScaled) {
      float most_of_values = -__builtin_inff();
#pragma unroll
      for (int j = 0; j < S::kScores; ++j)
        most_of_values =
            gcn::max2(most_of_values, score[j] + gcn::log2(__builtin_fabsf(v_scale_[j])));
      factor = raised(value_limit_[pass], most_of_values);
      // Finite where all values are zeros so far.
      to_values_[pass] =
          gcn::finite(gcn::exp2(shift_of(limit_[pass]) - shift_of(value_limit_[pass])));
    }
    scale_o(pass, factor);
  }

  // Makes it the same in all lanes of a row. Returns what sums that it is the limit of are to be
  // multiplied by.
  __device__ float raised(float& limit, float most) {
    auto& lds = lds_.loop;
    lds.most[wave_][lane_.id] = most;
    gcn::wave_fence();
    for (int group = 0; group < S::kGroups; ++group)
#pragma unroll
      for (int i = 0; i < S::kRowLanes; ++i)
        most = gcn::max2(most, lds.most[wave_][group * S::kLanes + lane_.row() * S::kRowLanes + i]);
    gcn::wave_fence();
    const float before = shift_of(limit);
    limit = gcn::max2(limit, most + kSlack);
    return gcn::exp2(before - shift_of(limit));
  }

  __device__ void scale_o(int pass, float factor) {
    auto& lds = lds_.loop;
    lds.factor[wave_][lane_.row()] = factor;
    gcn::wave_fence();
#pragma unroll
    for (int r = 0; r < S::kPassRows; ++r) {
      const float row_factor = lds.factor[wave_][r];
#pragma unroll
      for (int e = 0; e < S::kColumns; ++e)
        gcn::scale_by(o_[pass * S::kPassRows + r][e], row_factor);
    }
    gcn::wave_fence();
  }

  __device__ void join() {
    auto& lds = lds_.join;
#pragma unroll
    for (int pass = 0; pass < S::kPasses; ++pass) {
      lds.sum[pass][wave_][lane_.id] = sum_[pass];
      const int row = pass * S::kPassRows + lane_.row();
      lds.shift[wave_][row] = shift_of(limit_[pass]);
      const float of_values = shift_of(kScaled ? value_limit_[pass] : limit_[pass]);
      lds.weight[wave_][row] = of_values + static_cast<float>(Numbers::kExponent);
    }
    gcn::workgroup_barrier();
    if (threadIdx.x < T.rows) weigh_waves(static_cast<int>(threadIdx.x));
#pragma unroll
    for (int first = 0; first < T.rows; first += kJoinRows) {
#pragma unroll
      for (int r = 0; r < kJoinRows; ++r) {
        auto* const to = &lds.o[wave_ * S::kOfValues.groups + lane_.value_group()][r]
                               [lane_.value_chunk() * S::kColumns];
#pragma unroll
        for (int e = 0; e < S::kColumns; e += 4) lds_write(to + e, as_vector(&o_[first + r][e]));
      }
      gcn::workgroup_barrier();
      for (int i = static_cast<int>(threadIdx.x); i < kJoinRows * T.head_dim; i += T.threads())
        write(first + i / T.head_dim, i % T.head_dim, joined(first, i));
      gcn::workgroup_barrier();
    }
  }

  // One thread a row: how much each wave's O counts, of which lds.weight holds the shift, and the
  // row's log-sum-exp.
  __device__ void weigh_waves(int row) {
    auto& lds = lds_.join;
    float most = lds.shift[0][row];
    for (int w = 1; w < T.waves; ++w) most = gcn::max2(most, lds.shift[w][row]);
    float sum = 0.0f;
    for (int w = 0; w < T.waves; ++w) {
      const float weight = gcn::exp2(lds.shift[w][row] - most);
      for (int group = 0; group < S::kGroups; ++group)
        for (int i = 0; i < S::kRowLanes; ++i)
          sum += weight * lds.sum[row / S::kPassRows][w]
                                 [group * S::kLanes + row % S::kPassRows * S::kRowLanes + i];
    }
    const float inverse = sum == 0.0f ? 0.0f : gcn::reciprocal(sum);
    for (int w = 0; w < T.waves; ++w)
      lds.weight[w][row] = gcn::exp2(lds.weight[w][row] - most) * inverse;
    lds.lse[row] = sum == 0.0f ? -__builtin_inff() : most + gcn::log2(sum);
  }

  // Element i of the rows that are being joined.
  __device__ float joined(int first, int i) const {
    const auto& lds = lds_.join;
    const int row = i / T.head_dim, column = i % T.head_dim;
    float x = 0.0f;
#pragma unroll
    for (int w = 0; w < T.waves; ++w) {
      float of_wave = 0.0f;
#pragma unroll
      for (int group = 0; group < S::kOfValues.groups; ++group)
        of_wave += lds.o[w * S::kOfValues.groups + group][row][column];
      x += lds.weight[w][first + row] * of_wave;
    }
    return x;
  }

  __device__ void write(int row, int column, float x) const {
    if (row >= item_.rows || column >= args_->head_dim_v) return;
    const float lse = lds_.join.lse[row];
    const int head = head_of(row);
    const int64_t lse_index = item_.batch * args_->lse_batch_stride +
                              head * args_->lse_head_stride + item_.first_q + token_of(row);
    if (item_.splits > 1) {
      const bool own_slots = args_->at_once > 0;
      const int slot = own_slots ? item_.unit(*args_) : item_.split;
      const int64_t at = slot * args_->partials.rows +
                         (own_slots ? head * args_->seqlen_q + token_of(row) : lse_index);
      args_->partials.o[at * args_->head_dim_v + column] = x;
      if (column == 0) args_->partials.lse[at] = lse;
      return;
    }
    const float sink = args_->sinks == nullptr ? -__builtin_inff() : args_->sinks[head] * kLog2e;
    const Joined joined = Joined::of(lse, sink);
    row_of(args_->o, row)[column] = narrow<E>(x * joined.weight_a);
    if (column == 0) args_->lse[lse_index] = joined.lse * kLn2;
  }

  __device__ static float4v as_vector(const float* x) { return {x[0], x[1], x[2], x[3]}; }

  __device__ int token_of(int row) const { return (item_.first_row + row) / ratio_; }
  __device__ int head_of(int row) const {
    return item_.head_kv * ratio_ + (item_.first_row + row) % ratio_;
  }
  __device__ gcn::half* row_of(const TensorView& x, int row) const {
    return static_cast<gcn::half*>(x.data) + item_.batch * x.batch_stride +
           (item_.first_q + token_of(row)) * x.row_stride + head_of(row) * x.head_stride;
  }

  const DecodeArgs* args_;
  DecodeStorage<T, E>& lds_;
  DecodeItem item_;
  DecodeLane<T> lane_;
  int wave_;
  int ratio_;  // query heads of a key head
  Visible visible_;
  int first_step_, end_step_, end_key_;
  float scale_log2_;
  int modified_;      // scores, by more than the scale
  uint32_t in_head_;  // kPartsPastHead only: all bits if the second part is the head's, else none
  // Of the lane's row in each pass, logits in base 2.
  int first_[S::kPasses], last_[S::kPasses];  // that it sees
  float slope_[S::kPasses];
  float limit_[S::kPasses];        // a logit above it raises the row's shift (softmax_state.h)
  float value_limit_[S::kPasses];  // kScaled only: likewise, of logits with the values' scales
  float to_values_[S::kPasses];    // kScaled only: from the one's shift to the other's
  float bias_[S::kPasses];         // kBias only: of products
  float sum_[S::kPasses];          // of the lane's keys
  float o_[T.rows][S::kColumns];   // of the values of the lane's group
  float k_scale_[S::kScores], v_scale_[S::kScores];  // kScaled only
  gcn::half2 rope_[S::kKeys];                        // kLatent only
};

template <DecodeTile T, Element E, KvFormat F = KvFormat::plain>
__device__ inline void decode(const DecodeArgs& args) {
  __shared__ DecodeStorage<T, E> lds;
  static_assert(sizeof(lds) == decode_lds_bytes(T, E),
                "DecodeStorage and core/lds_budget.h disagree");
  DecodeBlock<T, E, F>(args, lds).run();
}

}  // namespace flashattn
