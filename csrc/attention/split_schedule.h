// Which split of which sequence a unit of the grid takes, where the lengths of a batch are known to
// the card alone. All workgroups read all lengths and come to the same result, in about 1 us, so
// nothing has to run before decode, and a replayed graph follows lengths that have changed.
//
// A split takes at most `share` steps, and so a sequence ceil(steps / share) units. The share is
// the least for which there are no more units than splits of equal sequences would be. Where that
// would leave more than half the card idle (a long sequence among short ones, none of them split),
// it is what each unit would take if those that run at once had all steps.
#pragma once

#include "attention/block_range.h"
#include "attention/cache_rows.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/grid.h"
#include "gcn/math.h"
#include "gcn/reduce_wave.h"
#include "gcn/wave.h"

namespace flashattn {

// Steps [begin, begin + count) hold the keys that some of the rows [first, last] see.
template <DecodeTile T>
struct VisibleSteps {
  int begin, count, end_key;

  __device__ VisibleSteps(const Visible& visible, int first, int last)
      : begin(visible.key_begin(first) / T.step_keys()), end_key(visible.key_end(last)) {
    const int steps = end_key > 0 ? ceil_div(end_key, T.step_keys()) - begin : 0;
    count = steps > 0 ? steps : 0;
  }
};

struct SequenceSplit {
  int batch;  // beyond the batch: the unit has nothing to do
  int split, splits;
};

// Counts are floats: they are small, and the division of one by another is then a product.
template <DecodeTile T>
class SplitSchedule {
 public:
  __device__ explicit SplitSchedule(const DecodeArgs& args)
      : args_(args), own_(steps_of(gcn::lane_id())), per_unit_(units_a_step(choose_share())) {}

  __device__ SequenceSplit of(int unit) const {
    float steps = own_;
    for (int first = 0;;) {
      const auto splits = static_cast<int>(units_of(steps, per_unit_));
      const int end = gcn::prefix_sum_wave(splits);
      const int lane = gcn::first_lane(unit < end);
      if (lane < kWaveSize) {
        const int count = gcn::from_lane(splits, lane);
        return {first + lane, unit - gcn::from_lane(end, lane) + count, count};
      }
      unit -= gcn::from_lane(end, kWaveSize - 1);
      first += kWaveSize;
      if (first >= args_.batch) return {args_.batch, 0, 1};
      steps = steps_of(first + gcn::lane_id());
    }
  }

 private:
  // An empty sequence counts as one step: its rows need a workgroup that says so. Past the batch:
  // 0.
  __device__ float steps_of(int batch) const {
    const auto number_at = [](const int32_t* numbers, int index, int without) {
      return numbers == nullptr ? without : numbers[index];
    };
    const int b = batch < args_.batch ? batch : 0;
    const KvCache& cache = args_.cache;
    const int seqlen_k = CacheRows::count(cache, number_at(cache.seqlens, b, cache.capacity),
                                          number_at(cache.leftpad, b, 0), args_.seqlen_new);
    const int seqlen_q =
        number_at(args_.cu_seqlens_q, b + 1, args_.seqlen_q) - number_at(args_.cu_seqlens_q, b, 0);
    const Visible visible{seqlen_q, seqlen_k, seqlen_k - seqlen_q, args_.window_left,
                          args_.window_right};
    const int steps = seqlen_q > 0 ? VisibleSteps<T>(visible, 0, seqlen_q - 1).count : 0;
    return batch >= args_.batch ? 0.0f : steps > 0 ? static_cast<float>(steps) : 1.0f;
  }

  // A little less than the quotient, so that what divides evenly is not rounded up. A sequence of
  // steps has one unit at least; no two lanes, waves or workgroups come to different numbers.
  __device__ static float units_a_step(float share) {
    constexpr float kBelow = 1.0f - 0x1p-20f;
    return gcn::reciprocal(share) * kBelow;
  }
  __device__ static float units_of(float steps, float per_unit) {
    return __builtin_ceilf(steps * per_unit);
  }

  // Of all sequences; the lane's own first.
  template <class Of, class Op>
  __device__ float over_batch(Of of, Op op) const {
    float x = of(own_);
    for (int first = kWaveSize; first < args_.batch; first += kWaveSize)
      x = op(x, of(steps_of(first + gcn::lane_id())));
    return gcn::reduce_wave(x, op);
  }

  __device__ float choose_share() const {
    const auto itself = [](float x) { return x; };
    const auto sum = [](float a, float b) { return a + b; };
    const float total = over_batch(itself, sum);
    const float longest = over_batch(itself, gcn::max2);
    const auto units = static_cast<float>(args_.batch * args_.splits);
    const auto fits = [&](float share) {
      const float per_unit = units_a_step(share);
      return over_batch([&](float steps) { return units_of(steps, per_unit); }, sum) <= units;
    };

    const float of_card = total * gcn::reciprocal(static_cast<float>(args_.at_once));
    const float least = gcn::max2(least_share(of_card), longest * (1.0f / kMaxSplits));
    float share = gcn::max2(least, total * gcn::reciprocal(units));
    if (fits(share)) return share;  // equal lengths above all
    const float even = gcn::max2(least, of_card);
    float most = 2.0f * even;
    if (!fits(most)) return even;
    while (most - share > share * kPrecision) {
      const float middle = 0.5f * (share + most);
      (fits(middle) ? most : share) = middle;
    }
    return most;
  }

  // A split costs kRoundKeys more keys than it has, and the last one to end has on average half of
  // its keys to itself: that sum is least at the root. The host, which knew that all are as long as
  // the cache, would have counted rounds: its splits are not too small.
  __device__ float least_share(float of_card) const {
    constexpr float kStep = T.step_keys();
    const float root = gcn::square_root(of_card * (2 * kRoundKeys / kStep));
    const float planned = static_cast<float>(args_.cache.capacity) *
                          gcn::reciprocal(static_cast<float>(args_.splits) * kStep);
    return gcn::max2(root < planned ? root : planned, kLeastSplitKeys / kStep);
  }

  static constexpr float kPrecision = 1.0f / 32;  // of the share

  const DecodeArgs& args_;
  float own_;  // steps of the sequence whose number is the lane's
  float per_unit_;
};

}  // namespace flashattn
