// The forward of grids that do not fill the card evenly: after the workgroups with a query block
// each come some with a piece of one (core/fwd_split.h).
#pragma once

#include "core/fwd_split.h"
#include "kernels/fwd.h"

namespace flashattn {

template <Tile T, Element E>
__device__ inline void fwd_split(const SplitFwdArgs& args) {
  __shared__ LdsStorage<T, E> lds;
  const FwdSplit& split = args.split;
  const int group = static_cast<int>(blockIdx.x);
  SplitPiece piece{.item = group, .first = 0, .last = 0x7fffffff, .slot = -1};
  if (group >= split.whole) piece = split.pieces[group - split.whole];

  ForwardBlock<T, E> block(args.fwd, lds);
  if (!block.start(work_item(args.fwd, T.block_m, piece.item))) return;
  block.attend(block.blocks().part(piece.first, piece.last));
  if (piece.slot < 0) {
    block.store();
  } else {
    block.store_partial({.o = split.partial_o + int64_t{piece.slot} * T.block_m * T.head_dim_v,
                         .lse = split.partial_lse + piece.slot * T.block_m});
  }
}

}  // namespace flashattn
