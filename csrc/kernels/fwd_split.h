// The forward of grids that do not fill the card evenly: after the workgroups with a query block
// each come some with a piece of one (core/fwd_split.h).
#pragma once

#include "core/fwd_split.h"
#include "gcn/arrivals.h"
#include "kernels/fwd.h"

namespace flashattn {

template <Tile T, Element E>
__device__ inline void fwd_split(const SplitFwdArgs& args) {
  __shared__ LdsStorage<T, E> lds;
  const int group = static_cast<int>(blockIdx.x);
  SplitPiece piece{
      .item = group, .first = 0, .last = 0x7fffffff, .slot = 0, .first_slot = 0, .slots = 1};
  if (group >= args.split.whole) piece = args.split.pieces[group - args.split.whole];

  ForwardBlock<T, E> block(args.fwd, lds);
  if (!block.start(work_item(args.fwd, T.block_m, piece.item))) return;
  block.attend(block.blocks().part(piece.first, piece.last));

  // A wave's rows are its own, so its counterparts in the other pieces are all that it waits for.
  const FwdSplit& split = gcn::kernel_argument<SplitFwdArgs>().split;
  const int wave = block.wave(), first_slot = piece.first_slot;
  const auto partial = [&](int slot) {
    return PartialOutput<T>(split.partial_o, split.partial_lse, slot, wave);
  };
  const bool whole = piece.slots == 1;
  if (!whole) {
    block.store_partial(partial(piece.slot));
    if (!gcn::comes_last(split.arrivals + first_slot * T.waves + wave, split.launch, piece.slots))
      return;
  }
  block.store_merged(whole ? 0 : piece.slots, [&](int i) { return partial(first_slot + i); });
}

}  // namespace flashattn
