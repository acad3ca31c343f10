// How a forward cuts query blocks into pieces that fill the card evenly (core/fwd_split.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/fwd_split.h"
#include "core/tile.h"

namespace flashattn {

// Key blocks that the query block at first_row visits. The kernel's BlockRange does the same on the
// card.
int64_t steps_of(const FwdArgs& args, const Tile& tile, int64_t first_row);

// Those of each query block, in the grid's order.
std::vector<int64_t> steps_of_items(const FwdArgs& args, const Tile& tile);

struct SplitPlan {
  int32_t whole;                   // query blocks with a workgroup each
  std::vector<SplitPiece> pieces;  // of the others, the longest first
  int32_t slots;                   // of partial results

  uint32_t workgroups() const {
    return static_cast<uint32_t>(whole) + static_cast<uint32_t>(pieces.size());
  }
};

// The plan as the kernel gets it, without memory for partial results.
FwdSplit split_of(const SplitPlan& plan);

// The ways worth weighing for a card that holds `at_once` workgroups. None where no query block
// would be cut: the grid fills the card evenly, or so often that it does not matter, or lengths are
// known to the card alone.
std::vector<SplitPlan> split_plans(const FwdArgs& args, const Tile& tile, int64_t at_once);

}  // namespace flashattn
