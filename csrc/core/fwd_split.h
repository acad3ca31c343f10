// The arguments of a forward that cuts some query blocks into pieces along the keys, so that its
// workgroups fill the card evenly (the idea of stream-K, Osama et al. 2023, for attention), and of
// the kernel that then combines what the pieces found.
#pragma once

#include <cstdint>

#include "core/fwd_args.h"

namespace flashattn {

inline constexpr int32_t kMaxPieces = 192;  // kernel arguments end at 4 KiB

// Steps [first, last) of a query block. Query blocks are counted through heads and batch in the
// grid's order.
struct SplitPiece {
  int32_t item;
  int32_t first;
  int32_t last;
  int32_t slot;  // of its partial result; below 0: it is the whole query block
};

struct FwdSplit {
  float* partial_o;    // [slots, block_m, head_dim_v of the tile]
  float* partial_lse;  // [slots, block_m]
  int32_t whole;       // workgroups that have a query block each; then come the pieces
  SplitPiece pieces[kMaxPieces];
};

struct SplitFwdArgs {
  FwdArgs fwd;
  FwdSplit split;
};

// A query block, and where its pieces' partial results are.
struct SplitItem {
  int32_t batch;
  int32_t head_q;
  int32_t first_row;
  int32_t first_slot;
  int32_t slots;
};

struct CombineArgs {
  FwdArgs fwd;
  const float* partial_o;
  const float* partial_lse;
  int32_t block_m;
  int32_t columns;  // of partial_o
  SplitItem items[kMaxPieces / 2];
};

inline constexpr int32_t kCombineThreads = 256;  // of a workgroup of the combine kernel
inline constexpr int32_t kCombineRows = kCombineThreads / 16;

}  // namespace flashattn
