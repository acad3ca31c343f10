// Which keys a query row sees, and from that, which key blocks a query block visits and which of
// those need a mask. The only place with this arithmetic; signed, since seqlen_q may exceed
// seqlen_k.
#pragma once

#include "core/fwd_args.h"
#include "core/tile.h"

namespace flashattn {

struct Visible {
  int seqlen_q;
  int seqlen_k;
  int diagonal;  // key that query 0 is level with
  int window_left;
  int window_right;

  // Row `row` sees keys [key_begin(row), key_end(row)); none if that is empty.
  __device__ int key_begin(int row) const {
    const int begin = row + diagonal - window_left;
    return begin > 0 ? begin : 0;
  }
  __device__ int key_end(int row) const {
    // Rows of the tile past seqlen_q are never stored; the bound keeps their keys in range.
    const int end = row + diagonal + window_right + 1;
    return end < seqlen_k ? end : seqlen_k;
  }
  // Which queries a key is seen by, in the same terms.
  __device__ Visible transposed() const {
    return {seqlen_k, seqlen_q, -diagonal, window_right, window_left};
  }
};

// Blocks [begin, end) hold the keys that some row sees; of these, [whole_begin, whole_end) are seen
// whole by every row.
struct BlockRange {
  int begin, whole_begin, whole_end, end;

  template <Tile T>
  __device__ static BlockRange of(const Visible& visible, int first_row) {
    const int rows_left = visible.seqlen_q - first_row;
    const int last_row = first_row + (rows_left < T.block_m ? rows_left : T.block_m) - 1;
    const int end = ceil_block<T>(clamp0(visible.key_end(last_row)));
    const int begin = visible.key_begin(first_row) / T.block_n;
    return {.begin = begin < end ? begin : end,
            .whole_begin = ceil_block<T>(visible.key_begin(last_row)),
            .whole_end = clamp0(visible.key_end(first_row)) / T.block_n,
            .end = end};
  }

  // Steps [first, last) of these.
  __device__ BlockRange part(int first, int last) const {
    BlockRange it = *this;
    it.begin = begin + first;
    it.end = last < end - begin ? begin + last : end;
    return it;
  }

  __device__ bool is_whole(int block) const { return block >= whole_begin && block < whole_end; }

 private:
  __device__ static int clamp0(int x) { return x > 0 ? x : 0; }
  template <Tile T>
  __device__ static int ceil_block(int key) {
    return key / T.block_n + (key % T.block_n != 0);
  }
};

}  // namespace flashattn
