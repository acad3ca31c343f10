#include "ops/split_plan.h"

#include <algorithm>
#include <functional>

#include "core/grid.h"

namespace flashattn {
namespace {

// Beyond so many fills of the card an uneven last one costs little, and the plan more.
constexpr int64_t kMostFills = 8;

// All steps of the items in one row, cut where an item ends and into `shares` equal shares.
SplitPlan cut(const FwdArgs& args, const Tile& tile, const std::vector<int64_t>& steps_of_item,
              int64_t first_item, int64_t shares) {
  SplitPlan plan{.whole = static_cast<int32_t>(first_item), .pieces = {}, .items = {}, .slots = 0};
  int64_t total = 0;
  for (const int64_t steps : steps_of_item) total += steps;
  shares = std::min(shares, total);
  int64_t done = 0, share = 1;
  for (size_t i = 0; i < steps_of_item.size(); ++i) {
    const auto item = static_cast<int32_t>(first_item + static_cast<int64_t>(i));
    const int64_t end = done + steps_of_item[i], begin = done;
    const size_t first_piece = plan.pieces.size();
    do {
      while (share <= shares && total * share / shares <= done) ++share;
      const int64_t next = share <= shares ? std::min(end, total * share / shares) : end;
      plan.pieces.push_back({.item = item,
                             .first = static_cast<int32_t>(done - begin),
                             .last = static_cast<int32_t>(next - begin),
                             .slot = -1});
      done = next;
    } while (done < end);
    const size_t count = plan.pieces.size() - first_piece;
    if (count == 1) continue;
    const WorkItem its = work_item(args, tile.block_m, item);
    plan.items.push_back({.batch = its.batch,
                          .head_q = its.head_q,
                          .first_row = its.first_row,
                          .first_slot = plan.slots,
                          .slots = static_cast<int32_t>(count)});
    for (size_t p = first_piece; p < plan.pieces.size(); ++p) plan.pieces[p].slot = plan.slots++;
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

std::optional<SplitPlan> plan_split(const FwdArgs& args, const Tile& tile, int64_t at_once) {
  const bool lengths_on_card =
      args.sequences.cu_seqlens_q != nullptr || args.sequences.seqused_k != nullptr;
  const int64_t items = int64_t{ceil_div(args.seqlen_q, tile.block_m)} * args.heads_q * args.batch;
  if (lengths_on_card || items == 0 || items >= kMostFills * at_once) return std::nullopt;
  std::vector<int64_t> steps;
  for (int32_t item = 0; item < items; ++item)
    steps.push_back(steps_of(args, tile, work_item(args, tile.block_m, item).first_row));
  // Workgroups that are alike come in rounds, and only what would be the last one is cut.
  const bool alike = std::ranges::adjacent_find(steps, std::not_equal_to{}) == steps.end();
  const int64_t whole = alike ? items / at_once * at_once : 0;
  // A share adds a cut, and so a piece, to the items.
  const int64_t shares = std::min(at_once, kMaxPieces - (items - whole));
  if (whole == items || shares < 2) return std::nullopt;
  steps.erase(steps.begin(), steps.begin() + whole);
  SplitPlan plan = cut(args, tile, steps, whole, shares);
  if (plan.items.empty()) return std::nullopt;
  std::ranges::stable_sort(plan.pieces, std::greater{},
                           [](const SplitPiece& piece) { return piece.last - piece.first; });
  return plan;
}

}  // namespace flashattn
