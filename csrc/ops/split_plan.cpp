#include "ops/split_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/grid.h"

namespace flashattn {
namespace {

// Beyond so many fills of the card an uneven last one costs little, and the plan more.
constexpr int64_t kMostFills = 8;

int64_t sum_of(const std::vector<int64_t>& steps) {
  return std::accumulate(steps.begin(), steps.end(), int64_t{0});
}

// The pieces of an item end at `ends`, the last at its last step.
void add_item(SplitPlan& plan, int32_t item, const std::vector<int64_t>& ends) {
  const auto first_slot = static_cast<uint8_t>(plan.slots);
  const auto count = static_cast<uint8_t>(ends.size());
  for (uint8_t i = 0; i < count; ++i) {
    const bool cut = count > 1;
    plan.pieces.push_back({.item = item,
                           .first = static_cast<int32_t>(i == 0 ? 0 : ends[i - 1]),
                           .last = static_cast<int32_t>(ends[i]),
                           .slot = static_cast<uint8_t>(cut ? first_slot + i : 0),
                           .first_slot = static_cast<uint8_t>(cut ? first_slot : 0),
                           .slots = count});
  }
  if (count > 1) plan.slots += count;
}

// All steps in one row, cut where an item ends and into `shares` equal shares. The least steps, but
// up to two pieces a share.
SplitPlan cut_through(const std::vector<int64_t>& steps_of_item, int32_t first_item,
                      int64_t shares) {
  SplitPlan plan{.whole = first_item, .pieces = {}, .slots = 0};
  const int64_t total = sum_of(steps_of_item);
  shares = std::min(shares, total);
  int64_t begin = 0, share = 1;
  for (const int64_t steps : steps_of_item) {
    std::vector<int64_t> ends;
    for (;; ++share) {
      const int64_t end = total * share / shares - begin;
      if (share >= shares || end >= steps) break;
      if (end > 0) ends.push_back(end);
    }
    ends.push_back(steps);
    add_item(plan, first_item++, ends);
    begin += steps;
  }
  return plan;
}

// Each item by itself into equal pieces, so few of all that they are under way together.
SplitPlan cut_each(const std::vector<int64_t>& steps_of_item, int32_t first_item, int64_t pieces) {
  SplitPlan plan{.whole = first_item, .pieces = {}, .slots = 0};
  const auto count_for = [&](int64_t share) {
    int64_t count = 0;
    for (const int64_t steps : steps_of_item) count += std::max<int64_t>(1, ceil_div(steps, share));
    return count;
  };
  const int64_t most = std::max<int64_t>(1, std::ranges::max(steps_of_item));
  int64_t share = std::max<int64_t>(1, ceil_div(sum_of(steps_of_item), pieces));
  while (share < most && count_for(share) > pieces) ++share;
  for (const int64_t steps : steps_of_item) {
    const int64_t count = std::max<int64_t>(1, ceil_div(steps, share));
    std::vector<int64_t> ends;
    for (int64_t i = 1; i <= count; ++i) ends.push_back(steps * i / count);
    add_item(plan, first_item++, ends);
  }
  return plan;
}

}  // namespace

int64_t steps_of(const FwdArgs& args, const Tile& tile, int64_t first_row) {
  const int64_t last_row = std::min<int64_t>(first_row + tile.block_m, args.seqlen_q) - 1;
  const int64_t diagonal = args.top_left != 0 ? 0 : int64_t{args.seqlen_k} - args.seqlen_q;
  const int64_t end = std::min<int64_t>(args.seqlen_k, last_row + diagonal + args.window_right + 1);
  const int64_t begin = std::max<int64_t>(0, first_row + diagonal - args.window_left);
  if (end <= begin) return 0;
  return (end + tile.block_n - 1) / tile.block_n - begin / tile.block_n;
}

std::vector<int64_t> steps_of_items(const FwdArgs& args, const Tile& tile) {
  const int64_t items = int64_t{ceil_div(args.seqlen_q, tile.block_m)} * args.heads_q * args.batch;
  std::vector<int64_t> steps;
  for (int32_t item = 0; item < items; ++item)
    steps.push_back(steps_of(args, tile, work_item(args, tile.block_m, item).first_row));
  return steps;
}

FwdSplit split_of(const SplitPlan& plan) {
  FwdSplit split{};
  split.whole = plan.whole;
  std::ranges::copy(plan.pieces, split.pieces);
  return split;
}

std::vector<SplitPlan> split_plans(const FwdArgs& args, const Tile& tile, int64_t at_once) {
  const bool lengths_on_card =
      args.sequences.cu_seqlens_q != nullptr || args.sequences.seqused_k != nullptr;
  const int64_t items = int64_t{ceil_div(args.seqlen_q, tile.block_m)} * args.heads_q * args.batch;
  if (lengths_on_card || items == 0 || items >= kMostFills * at_once) return {};
  std::vector<int64_t> steps = steps_of_items(args, tile);
  // Workgroups that are alike come in rounds, and only what would be the last one is cut.
  const bool alike = std::ranges::adjacent_find(steps, std::not_equal_to{}) == steps.end();
  const auto whole = static_cast<int32_t>(alike ? items / at_once * at_once : 0);
  // A share adds a cut, and so a piece, to the items.
  const int64_t shares = std::min(at_once, kMaxPieces - (items - whole));
  if (whole == items || shares < 2) return {};
  steps.erase(steps.begin(), steps.begin() + whole);
  if (sum_of(steps) == 0) return {};  // no row sees a key
  const int64_t each = std::min<int64_t>(at_once, kMaxPieces);
  std::vector<SplitPlan> plans = {cut_through(steps, whole, shares), cut_each(steps, whole, each),
                                  cut_each(steps, whole, each / 2)};
  std::erase_if(plans, [](const SplitPlan& plan) {
    return plan.slots == 0 || std::ssize(plan.pieces) > kMaxPieces;
  });
  for (SplitPlan& plan : plans) {
    std::ranges::stable_sort(plan.pieces, std::greater{},
                             [](const SplitPiece& piece) { return piece.last - piece.first; });
  }
  return plans;
}

}  // namespace flashattn
