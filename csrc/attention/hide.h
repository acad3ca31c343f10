// Scores that a mask hides, in a block that some row sees in part.
#pragma once

#include "attention/block_range.h"
#include "attention/shape.h"
#include "gcn/wave.h"

namespace flashattn {

// Row and key of a score are given relative to the lane's first ones.
template <int rows, int keys, class Unseen>
__device__ inline void hide_where(float (&s)[rows][keys], Unseen unseen) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < keys; ++j)
      if (unseen(i * kGroups, j * kGroupLanes)) s[i][j] = -__builtin_inff();
}

// Makes scores of keys that their row does not see -inf. The lane's first row is `tile_row` rows
// below `first_row`, its first key `lane_in_group` keys after `first_key`.
template <Tile T, int rows, int keys>
__device__ inline void hide_unseen(float (&s)[rows][keys], const Visible& visible, int first_row,
                                   int tile_row, int first_key, int lane_in_group) {
  // Of the row over the key, in the block. Opaque: all that follows from it alone would be moved
  // out of the loop, into registers that are not there.
  const int ahead = gcn::opaque(tile_row - lane_in_group);
  const int diagonal = first_key - first_row - visible.diagonal;
  hide_where(s, [&](int down, int right) {
    return ahead + down - right < diagonal - visible.window_right;
  });
  if (visible.window_left < kMaxSeqlen)
    hide_where(s, [&](int down, int right) {
      return ahead + down - right > diagonal + visible.window_left;
    });
  if (visible.seqlen_k - first_key < T.block_n)
    hide_where(
        s, [&](int, int right) { return lane_in_group >= visible.seqlen_k - first_key - right; });
}

}  // namespace flashattn
