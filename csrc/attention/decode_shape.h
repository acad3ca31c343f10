// What a workgroup of decode takes, and how its tile is spread over the lanes of a wave.
//
// Lane c of a group of kLanes lanes holds a chunk of neighbouring columns of one key, as it comes
// from memory. A step of a wave is kKeys such loads; load u brings key u * kGroups + g for group g.
// Products of all rows with the keys are then sums over kLanes lanes, which share them out: each
// lane ends with kScores scores of one row of each pass. V comes likewise, with chunks of its own:
// each lane adds up O of its columns over the keys of its group.
#pragma once

#include "attention/batch_of_grid.h"
#include "attention/shape.h"
#include "attention/split_schedule.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/lds_budget.h"
#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn {

template <DecodeTile T>
struct DecodeShape {
  static constexpr ChunkLayout kOfKeys = T.keys(), kOfValues = T.values();
  static constexpr int kLanes = kOfKeys.lanes;
  static constexpr int kGroups = kOfKeys.groups;
  static constexpr int kKeys = kOfKeys.loads;
  static constexpr int kParts = T.k_columns / 8;  // of a chunk of K
  static constexpr int kValues = kOfValues.loads;
  static constexpr int kColumns = T.v_columns;
  static constexpr int kStepKeys = T.step_keys();
  static constexpr int kPassRows = T.pass_rows();
  static constexpr int kPasses = T.rows / kPassRows;
  static constexpr int kFold = kLanes < 16 ? kLanes : 16;  // a DPP row at most; rows agree after it
  static constexpr int kScores = kPassRows * kKeys / kFold;
  static constexpr int kRowLanes = kFold / kPassRows;  // neighbours with scores of the same row

  static_assert(kLanes == 8 || kLanes == 16 || kLanes == 32 || kLanes == 64, "head_dim");
  static_assert(T.rows % kPassRows == 0 && kPassRows <= kFold, "rows");
  static_assert(T.k_columns % 8 == 0, "k_columns");
  static_assert(kOfValues.lanes <= kWaveSize && kValues % 2 == 0, "v_columns");
  static_assert(T.rope == 0 || (kGroups == 1 && T.rope / 2 <= kWaveSize), "rope");
  static_assert(T.rope == 0 || T.k_columns == T.v_columns, "rope: keys are values");
  static_assert(kScores >= 1 && kScores <= kKeys && kPageMultiple % kStepKeys == 0);
};

// Which rows and which split a workgroup takes: tiles of the same keys are neighbours in the grid,
// then key heads, whose rows lie side by side in memory.
struct alignas(16) DecodeItem {
  int batch, head_kv, split, splits;  // splits: of the sequence's keys
  int first_row, rows;                // of the packed rows of the key head; rows: that exist
  int first_q;                        // row of q in which the sequence begins, if packed

  template <DecodeTile T>
  __device__ static DecodeItem from_grid(const DecodeArgs& args) {
    const int index = static_cast<int>(blockIdx.x);
    const int of_tiles = index / args.tiles, split = of_tiles / args.heads_kv;
    const SequenceSplit it = args.at_once > 0
                                 ? SplitSchedule<T>(gcn::kernel_argument<DecodeArgs>()).of(split)
                                 : SequenceSplit{batch_of_grid(), split, args.splits};
    return {.batch = it.batch,
            .head_kv = of_tiles % args.heads_kv,
            .split = it.split,
            .splits = it.splits,
            .first_row = index % args.tiles * T.rows,
            .rows = 0,
            .first_q = 0};
  }

  // Which split of the grid it is.
  __device__ static int unit(const DecodeArgs& args) {
    return static_cast<int>(blockIdx.x) / args.tiles / args.heads_kv;
  }

  __device__ bool is_first_of_sequence() const {
    return split == 0 && head_kv == 0 && first_row == 0;
  }

  // The same in all lanes, of one that lies in LDS.
  __device__ DecodeItem uniform() const {
    return {gcn::uniform(batch),  gcn::uniform(head_kv),   gcn::uniform(split),
            gcn::uniform(splits), gcn::uniform(first_row), gcn::uniform(rows),
            gcn::uniform(first_q)};
  }
};

// The lane's place in a wave.
template <DecodeTile T>
struct DecodeLane {
  using S = DecodeShape<T>;

  int id;

  __device__ int chunk() const { return id % S::kLanes; }  // of the row of a key
  __device__ int group() const { return id / S::kLanes; }
  __device__ int value_chunk() const { return id % S::kOfValues.lanes; }
  __device__ int value_group() const { return id / S::kOfValues.lanes; }
  __device__ int row() const { return id % S::kFold / S::kRowLanes; }  // of a pass
  // Key of score j in the step.
  __device__ int key(int j) const { return (first_key() + j) * S::kGroups + group(); }
  __device__ int first_key() const {
    return id % S::kFold * S::kScores % S::kKeys;
  }  // of the lane's
};

// In LDS: Q as the products want it, bf16 as fp32, and for each wave and group of lanes that hold a
// value the probabilities: pairs of keys in fp16, or single ones in fp32.
template <DecodeTile T, Element E>
struct DecodeLoopStorage {
  using S = DecodeShape<T>;
  static constexpr int kWords = E == Element::f16 ? S::kValues / 2 : S::kValues;
  using QElement = std::conditional_t<E == Element::f16, gcn::half, float>;

  alignas(16) QElement q[T.rows][T.columns_q()];
  alignas(16) uint32_t p[T.waves][S::kOfValues.groups][kWords][T.rows];
  float most[T.waves][kWaveSize];
  float factor[T.waves][S::kPassRows];
};

// What joins the waves at the end.
template <DecodeTile T>
struct DecodeJoinStorage {
  using S = DecodeShape<T>;

  alignas(16) float o[T.waves * S::kOfValues.groups][kJoinRows][T.head_dim];
  float sum[S::kPasses][T.waves][kWaveSize];
  float shift[T.waves][T.rows];
  float weight[T.waves][T.rows];
  float lse[T.rows];  // base 2
};

template <DecodeTile T, Element E>
struct DecodeStorage {
  union {
    DecodeLoopStorage<T, E> loop;
    DecodeJoinStorage<T> join;
  };
  DecodeItem item;  // for the end: while keys are streamed SGPRs are full
};

}  // namespace flashattn
