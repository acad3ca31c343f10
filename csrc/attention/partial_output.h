// What a piece of a query block's keys comes to, in memory, and how all pieces make the whole: O is
// the sum of theirs weighted by their shares of the softmax's denominator.
#pragma once

#include "attention/base2.h"
#include "attention/shape.h"
#include "attention/softmax_state.h"
#include "gcn/global_io.h"
#include "gcn/math.h"

namespace flashattn {

// The softmax of a row over the keys of several pieces: all lanes of a group have all of its sum.
struct MergedRow {
  // Finite: for a row that no piece has a key of, -inf - -inf would be NaN. A NaN stays one.
  float most = -gcn::kLargest;  // the largest LSE so far
  float sum = 0.0f;             // of exp(LSE - most)

  struct Weights {
    float before, piece;  // factors of O so far, and of the piece's
  };

  __device__ Weights add(float lse) {
    const float m = gcn::max2(most, lse);
    const Weights w{gcn::exp2((most - m) * kLog2e), gcn::exp2((lse - m) * kLog2e)};
    sum = sum * w.before + w.piece;
    most = m;
    return w;
  }

  __device__ RowTotal total() const { return {sum, gcn::max2(most * kLog2e, -gcn::kLargest)}; }
};

// What a wave's registers hold: normalised O, and LSE. Only its counterparts in other pieces read
// it, so it lies as the lanes have it: each instruction moves whole lines, at one offset of the
// lane from an address that the wave shares.
template <Tile T>
class PartialOutput {
  using S = Shape<T>;
  static constexpr int kChunks = S::kRows * S::kCols / 4;
  static_assert(S::kRows * S::kCols % 4 == 0, "O of a lane is moved by 16 bytes");
  static constexpr int kRowsOfWave = T.rows_per_wave(), kNumbers = kRowsOfWave * T.head_dim_v;

 public:
  // `o` and `lse` begin with slot 0 of the launch.
  __device__ PartialOutput(float* o, float* lse, int slot, int wave)
      : o_(o + int64_t{slot * T.waves + wave} * kNumbers),
        lse_(lse + (slot * T.waves + wave) * kRowsOfWave) {}

  // `scale`, `factor`: as for store_output().
  __device__ void store(float scale, float factor, const SoftmaxRow (&state)[S::kRows],
                        const float (&o)[S::kRows][S::kCols]) const {
    float x[S::kRows][S::kCols];
#pragma unroll
    for (int i = 0; i < S::kRows; ++i) {
      const auto [inverse_sum, lse] = state[i].total(scale).finish(-__builtin_inff());
      if (gcn::lane_id_anew() % kGroupLanes == 0) lse_[i * kGroups + group()] = lse;
#pragma unroll
      for (int c = 0; c < S::kCols; ++c) x[i][c] = o[i][c] * inverse_sum * factor;
    }
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
      chunk(j) = {at(x, j, 0), at(x, j, 1), at(x, j, 2), at(x, j, 3)};
  }

  // All loads are under way at a time.
  __device__ void merge_into(MergedRow (&merged)[S::kRows], float (&o)[S::kRows][S::kCols]) const {
    float lse[S::kRows];
    gcn::float4 x[kChunks];
#pragma unroll
    for (int i = 0; i < S::kRows; ++i) lse[i] = lse_[i * kGroups + group()];
#pragma unroll
    for (int j = 0; j < kChunks; ++j) x[j] = chunk(j);
    gcn::pin_schedule();
    MergedRow::Weights weights[S::kRows];
#pragma unroll
    for (int i = 0; i < S::kRows; ++i) weights[i] = merged[i].add(lse[i]);
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto [before, piece] = weights[(4 * j + e) / S::kCols];
        // An infinite V that weighs nothing is no NaN.
        const float share = piece == 0.0f ? 0.0f : piece * x[j][e];
        gcn::scale_by(at(o, j, e), before);
        at(o, j, e) += share;
      }
  }

 private:
  __device__ static int group() { return gcn::lane_id_anew() / kGroupLanes; }
  __device__ gcn::float4& chunk(int j) const {
    return reinterpret_cast<gcn::float4*>(o_)[j * kWaveSize + gcn::lane_id_anew()];
  }
  template <class O>
  __device__ static auto& at(O& o, int j, int e) {
    return o[(4 * j + e) / S::kCols][(4 * j + e) % S::kCols];
  }

  float *o_, *lse_;
};

}  // namespace flashattn
