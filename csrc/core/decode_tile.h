// A decode tile: the query rows that share one read of K and V, and what follows from it. Rows come
// from [[decode]] in configs/<arch>.toml.
#pragma once

#include "core/tile.h"

namespace flashattn {

// How a step's keys, or its values, come to the lanes of a wave: neighbours take `columns` columns
// each of one row, `groups` rows by one instruction, `loads` instructions for a step.
struct ChunkLayout {
  int columns;
  int lanes;  // of a row
  int groups;
  int loads;
};

struct DecodeTile {
  int head_dim;  // columns of Q, K, V and O; rows of fewer are padded with zeros
  int rows;      // query rows (tokens x query heads of one key head) of a workgroup
  int waves;     // of a workgroup; they share the keys among them
  Access access;
  // Multi-head latent attention (DeepSeek-V2): V is the first head_dim columns of K, and so many
  // more columns of Q and K, which have been turned by their positions, follow. 0: V is a tensor of
  // its own.
  int rope = 0;
  // Columns that a lane loads of a key, and of a value. More of keys: fewer lanes to sum a score
  // over. Fewer of values: more loads, and less of O in a lane, which holds rows x v_columns of it.
  int k_columns = 8;
  int v_columns = 8;

  constexpr int threads() const { return waves * kWaveSize; }
  constexpr int columns_q() const { return head_dim + rope; }
  constexpr int pass_rows() const { return rows < 8 ? rows : 8; }  // whose scores come at once

  // A wave's step is up to 16 keys, which lie in one page, and no more than 32 columns of them in a
  // lane.
  constexpr ChunkLayout keys() const {
    const int lanes = head_dim / k_columns, groups = kWaveSize / lanes;
    const int in_page = 16 / groups, in_registers = 32 / k_columns;
    return {k_columns, lanes, groups, in_page < in_registers ? in_page : in_registers};
  }
  constexpr int step_keys() const { return keys().groups * keys().loads; }
  constexpr ChunkLayout values() const {
    const int lanes = head_dim / v_columns, groups = kWaveSize / lanes;
    return {v_columns, lanes, groups, step_keys() / groups};
  }

  friend constexpr bool operator==(const DecodeTile&, const DecodeTile&) = default;
};

// Pages of the cache hold multiples of it, so that a step never lies in two.
inline constexpr int kPageMultiple = 16;

// What a split's beginning and end take, counted in keys that it could have streamed meanwhile
// (simulated: 7 us a round of workgroups), and the fewest keys that are worth a split.
inline constexpr int kRoundKeys = 192;
inline constexpr int kLeastSplitKeys = 256;

// Threads of the kernels beside decode.
inline constexpr int kAppendThreads = 256;
inline constexpr int kJoinThreads = 256;
inline constexpr int kJoinWaves = kJoinThreads / kWaveSize;  // a wave takes a row, or all do,
inline constexpr int kJoinColumns = 2 * kWaveSize;           // and so many of its columns

}  // namespace flashattn
