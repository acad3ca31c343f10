// Which keys a query row sees, and from that, which key blocks a query block visits and which of
// those need a mask. The only place with this arithmetic; signed, since seqlen_q may exceed
// seqlen_k.
#pragma once

#include "core/tile.h"

namespace flashattn {

template <Mask mask>
struct Visible {
  int seqlen_q;
  int seqlen_k;

  // Row `row` sees keys [0, key_end(row)); none if it is not positive.
  __device__ int key_end(int row) const {
    if constexpr (mask == Mask::full) return seqlen_k;
    // Rows of the tile past seqlen_q are never stored; the bound keeps their keys in range.
    const int end = seqlen_k - seqlen_q + row + 1;
    return end < seqlen_k ? end : seqlen_k;
  }
};

struct BlockRange {
  int unmasked_end;  // blocks [0, unmasked_end) are seen whole by every row
  int end;           // blocks [unmasked_end, end) are seen in part

  template <Tile T, Mask mask>
  __device__ static BlockRange of(Visible<mask> visible, int first_row) {
    const int rows_left = visible.seqlen_q - first_row;
    const int last_row = first_row + (rows_left < T.block_m ? rows_left : T.block_m) - 1;
    const int seen_by_all = clamp0(visible.key_end(first_row));
    const int seen_by_any = clamp0(visible.key_end(last_row));
    return {.unmasked_end = seen_by_all / T.block_n,
            .end = seen_by_any / T.block_n + (seen_by_any % T.block_n != 0)};
  }

 private:
  __device__ static int clamp0(int x) { return x > 0 ? x : 0; }
};

}  // namespace flashattn
