// How a tile is spread over the lanes of a wave.
//
// A wave owns rows_per_wave whole query rows, so neither softmax nor P ever crosses waves. Its
// lanes form 4 groups of 16 (a group is a DPP row): group g holds query rows g, g + 4, g + 8, ...
// of the wave; lane c of a group holds keys c, c + 16, c + 32, ... of the block, and for O an
// even share of the head_dim_v columns.
#pragma once

#include <type_traits>
#include <utility>

#include "core/lds_budget.h"
#include "core/tile.h"

namespace flashattn {

inline constexpr int kGroupLanes = 16;
inline constexpr int kGroups = kWaveSize / kGroupLanes;

template <Tile T>
struct Shape {
  static constexpr int kRows = T.rows_per_wave() / kGroups;  // query rows of a lane
  static constexpr int kKeys = T.block_n / kGroupLanes;      // keys of a lane in a block
  static constexpr int kCols = T.head_dim_v / kGroupLanes;   // O columns of a lane

  static_assert(T.block_m % (T.waves * kGroups) == 0, "block_m: whole rows for each lane group");
  static_assert(T.block_n % T.p_keys == 0 && T.p_keys % kGroupLanes == 0,
                "p_keys: as many for each lane, and whole parts of block_n");
  static_assert(T.head_dim % 16 == 0 && T.head_dim_v % kGroupLanes == 0,
                "head_dim: the inner loops take 16 columns at a time");
};

// v_dot2 multiplies P and V over pairs of keys. A lane holds keys 16 apart, so these make a pair,
// and no lane needs its neighbour's probability to build one.
__device__ constexpr int first_key_of_pair(int pair) {
  return pair / kGroupLanes * (2 * kGroupLanes) + pair % kGroupLanes;
}

// Calls f with 0, 1, .. n - 1 as constants: what depends on them is one, too, and registers that
// they index stay registers.
template <int n, class F>
__device__ inline void static_for(F f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (f(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, n>{});
}

// The columns of O fall into stripes: in a stripe lane c of a group holds `width` adjacent ones, so
// that it reads V by one instruction. Stripes of 4 as far as they go, then of 2 and 1.
struct Stripe {
  int first;  // of the lane's own columns, and times 16 of the tile's
  int width;
};

template <Tile T>
struct Stripes {
  static constexpr int kCols = Shape<T>::kCols;
  static constexpr int kCount = kCols / 4 + (kCols % 4 >= 2) + kCols % 2;

  __device__ static constexpr Stripe at(int i) {
    if (i < kCols / 4) return {.first = i * 4, .width = 4};
    const bool two = kCols % 4 >= 2 && i == kCols / 4;
    return {.first = two ? kCols / 4 * 4 : kCols - 1, .width = two ? 2 : 1};
  }
  // First column of the tile that lane c of a group holds in a stripe.
  __device__ static constexpr int column(Stripe stripe, int lane_in_group) {
    return stripe.first * kGroupLanes + lane_in_group * stripe.width;
  }
};

}  // namespace flashattn
