// How a forward cuts query blocks into pieces that fill the card evenly (core/fwd_split.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/fwd_split.h"
#include "core/tile.h"

namespace flashattn {

// Key blocks that the query block at first_row visits. The kernel's BlockRange does the same on the
// card.
int64_t steps_of(const FwdArgs& args, const Tile& tile, int64_t first_row);

struct SplitPlan {
  int32_t whole;                   // query blocks with a workgroup each
  std::vector<SplitPiece> pieces;  // of the others, the longest first
  std::vector<SplitItem> items;    // query blocks of more than one piece
  int32_t slots;                   // of partial results

  uint32_t workgroups() const {
    return static_cast<uint32_t>(whole) + static_cast<uint32_t>(pieces.size());
  }
};

// For a card that holds `at_once` workgroups. Nothing where no query block would be cut: the grid
// fills the card evenly, or so often that it does not matter, or lengths are known to the card
// alone.
std::optional<SplitPlan> plan_split(const FwdArgs& args, const Tile& tile, int64_t at_once);

}  // namespace flashattn
