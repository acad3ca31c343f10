// How a tile is spread over the lanes of a wave.
//
// A wave owns rows_per_wave whole query rows, so neither softmax nor P ever crosses waves. Its
// lanes form 4 groups of 16 (a group is a DPP row): group g holds query rows g, g + 4, g + 8, ...
// of the wave; lane c of a group holds keys c, c + 16, c + 32, ... of the block, and for O an
// even share of the head_dim columns.
#pragma once

#include "core/lds_budget.h"
#include "core/tile.h"

namespace flashattn {

inline constexpr int kGroupLanes = 16;
inline constexpr int kGroups = kWaveSize / kGroupLanes;

template <Tile T>
struct Shape {
  static constexpr int kRows = T.rows_per_wave() / kGroups;  // query rows of a lane
  static constexpr int kKeys = T.block_n / kGroupLanes;      // keys of a lane in a block
  static constexpr int kPairs = T.block_n / 2;               // pairs of keys in a block
  static constexpr int kCols = T.head_dim / kGroupLanes;     // O columns of a lane
  static constexpr int kColVec = kCols < 4 ? kCols : 4;      // of them adjacent

  static_assert(T.block_m % (T.waves * kGroups) == 0, "block_m: whole rows for each lane group");
  static_assert(T.block_n % (2 * kGroupLanes) == 0, "block_n: keys are paired 16 apart");
  static_assert(T.head_dim % (2 * kGroupLanes) == 0, "head_dim: at least 2 columns a lane");
  static_assert(fits_lds(T), "the tile needs more than 64 KiB of LDS");
};

// v_dot2 multiplies P and V over pairs of keys. A lane holds keys 16 apart, so these make a pair,
// and no lane needs its neighbour's probability to build one.
__device__ constexpr int first_key_of_pair(int pair) {
  return pair / kGroupLanes * (2 * kGroupLanes) + pair % kGroupLanes;
}

}  // namespace flashattn
