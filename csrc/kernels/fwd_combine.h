// Merges what the pieces of a query block found (kernels/fwd_split.h): O is the sum of theirs
// weighted by their shares of the softmax's denominator, always in the same order. 16 lanes have a
// row.
#pragma once

#include "attention/base2.h"
#include "attention/epilogue.h"
#include "attention/work_item.h"
#include "core/fwd_split.h"
#include "gcn/math.h"
#include "gcn/wave.h"

namespace flashattn {

// Four columns of a row, and the row's denominator relative to exp(most).
struct Merged {
  using Columns = gcn::float4;

  float most;  // the largest LSE so far, or the sink
  float sum;
  Columns o{};

  __device__ explicit Merged(float sink)
      : most(sink), sum(sink == -__builtin_inff() ? 0.0f : 1.0f) {}

  template <int n>
  __device__ void add(const float (&lse)[n], const Columns (&part)[n]) {
    // Finite: for a row that no piece has a key of, -inf - -inf would be NaN. A NaN stays one.
    float m = gcn::max2(most, -gcn::kLargest);
#pragma unroll
    for (int j = 0; j < n; ++j) m = gcn::max2(m, lse[j]);
    const float before = gcn::exp2((most - m) * kLog2e);
    sum *= before;
    o *= before;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float weight = gcn::exp2((lse[j] - m) * kLog2e);
      sum += weight;
      if (weight != 0.0f) o += weight * part[j];  // an infinite V that weighs nothing is no NaN
    }
    most = m;
  }

  __device__ Columns output() const { return o * (sum == 0.0f ? 0.0f : gcn::reciprocal(sum)); }
  __device__ float lse() const {
    return sum == 0.0f ? -__builtin_inff() : most + gcn::log2(sum) * kLn2;
  }
};

// Four pieces at a time: their loads are under way together.
__device__ inline Merged merge(const CombineArgs& args, const SplitItem& item, int row, int column,
                               float sink) {
  constexpr int n = 4;
  Merged merged(sink);
#pragma unroll 1
  for (int first = 0; first < item.slots; first += n) {
    float lse[n];
    Merged::Columns part[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const bool exists = first + j < item.slots;
      const int64_t at = int64_t{item.first_slot + (exists ? first + j : 0)} * args.block_m + row;
      part[j] =
          *reinterpret_cast<const Merged::Columns*>(args.partial_o + at * args.columns + column);
      lse[j] = exists ? args.partial_lse[at] : -__builtin_inff();
    }
    merged.add(lse, part);
  }
  return merged;
}

template <Element E>
__device__ inline void fwd_combine(const CombineArgs& args) {
  const FwdArgs& fwd = args.fwd;
  const SplitItem& item = args.items[blockIdx.y];
  const int lane_in_group = gcn::lane_id() % kGroupLanes;
  const int row_of_block =
      static_cast<int>(blockIdx.x) * kCombineRows + static_cast<int>(threadIdx.x) / kGroupLanes;
  const int row = item.first_row + row_of_block;
  if (row >= fwd.seqlen_q) return;
  const float sink = fwd.sinks == nullptr ? -__builtin_inff() : fwd.sinks[item.head_q];
  gcn::half* const out = head_base(fwd.o, item.batch, 0, item.head_q) + row * fwd.o.row_stride;
  for (int column = 4 * lane_in_group; column < fwd.head_dim_v; column += 4 * kGroupLanes) {
    const Merged merged = merge(args, item, row_of_block, column, sink);
    const auto o = merged.output();
    const gcn::half x[4] = {narrow<E>(o.x), narrow<E>(o.y), narrow<E>(o.z), narrow<E>(o.w)};
    gcn::store(out + column, x);
    if (column == 0)
      fwd.lse[item.batch * fwd.lse_batch_stride + item.head_q * fwd.lse_head_stride + row] =
          merged.lse();
  }
}

}  // namespace flashattn
