// A decode tile: the query rows that share one read of K and V, and what follows from it. Rows come
// from [[decode]] in configs/<arch>.toml.
#pragma once

#include "core/tile.h"

namespace flashattn {

struct DecodeTile {
  int head_dim;  // columns of Q, K, V and O; rows of fewer are padded with zeros
  int rows;      // query rows (tokens x query heads of one key head) of a workgroup
  int waves;     // of a workgroup; they share the keys among them
  Access access;
  // Multi-head latent attention (DeepSeek-V2): V is the first head_dim columns of K, and so many
  // more columns of Q and K, which have been turned by their positions, follow. 0: V is a tensor of
  // its own.
  int rope = 0;

  constexpr int threads() const { return waves * kWaveSize; }
  constexpr int columns_q() const { return head_dim + rope; }
  constexpr int pass_rows() const { return rows < 8 ? rows : 8; }  // whose scores come at once

  // A lane holds 16 bytes of a row of K or V, so so many lanes hold a key,
  constexpr int lanes_per_key() const { return head_dim / 8; }
  // a wave loads so many keys by one instruction,
  constexpr int key_groups() const { return kWaveSize / lanes_per_key(); }
  // and takes so many instructions for a step: up to 16 keys, which lie in one page.
  constexpr int keys_of_lane() const { return key_groups() > 4 ? 16 / key_groups() : 4; }
  constexpr int step_keys() const { return key_groups() * keys_of_lane(); }

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
