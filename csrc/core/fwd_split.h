// The arguments of a forward that cuts some query blocks into pieces along the keys, so that its
// workgroups fill the card evenly (the idea of stream-K, Osama et al. 2023, for attention). The
// piece that is done last combines what all of a query block found.
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
  uint8_t slot;        // of its partial result
  uint8_t first_slot;  // of those of the query block
  uint8_t slots;       // 1: the piece is the whole query block
};
static_assert(kMaxPieces <= UINT8_MAX);

struct FwdSplit {
  float* partial_o;    // [slots, block_m, head_dim_v of the tile]
  float* partial_lse;  // [slots, block_m]
  uint64_t* arrivals;  // [slots, waves], of which a query block uses its first slot's
  uint64_t launch;     // gcn/arrivals.h
  int32_t whole;       // workgroups that have a query block each; then come the pieces
  SplitPiece pieces[kMaxPieces];
};

struct SplitFwdArgs {
  FwdArgs fwd;
  FwdSplit split;
};

// Names of launches are 1 .. kLaunches.
inline constexpr uint64_t kLaunches = (uint64_t{1} << 56) - 1;

}  // namespace flashattn
