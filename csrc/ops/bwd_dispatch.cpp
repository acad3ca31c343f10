#include "ops/bwd_dispatch.h"

#include "bwd_table.h"

namespace flashattn {
namespace {

bool serves(const BwdKernel& kernel, const FwdProblem& problem, Gradient gradient) {
  const Tile& tile = kernel.tile;
  if (kernel.gradient != gradient || kernel.element != problem.element) return false;
  if (tile.head_dim < problem.args.head_dim || tile.head_dim_v < problem.args.head_dim_v) {
    return false;
  }
  if (tile.scores == Scores::plain && problem.changes_scores) return false;
  return tile.access == Access::elements || problem.rows_of_chunks;
}

// A row that can do more than the problem asks for is slower at it.
int surplus(const BwdKernel& kernel, const FwdProblem& problem) {
  const Tile& tile = kernel.tile;
  const bool by_elements = tile.access == Access::elements && problem.rows_of_chunks;
  const bool changes = tile.scores == Scores::modified && !problem.changes_scores;
  return 2 * by_elements + changes;
}

bool is_better(const BwdKernel& a, const BwdKernel& b, const FwdProblem& problem) {
  const int columns_a = a.tile.head_dim + a.tile.head_dim_v,
            columns_b = b.tile.head_dim + b.tile.head_dim_v;
  if (columns_a != columns_b) return columns_a < columns_b;
  return surplus(a, problem) < surplus(b, problem);
}

}  // namespace

const BwdKernel* choose_bwd_kernel(const FwdProblem& problem, Gradient gradient) {
  const BwdKernel* best = nullptr;
  for (const BwdKernel& row : kBwdKernels) {
    if (!serves(row, problem, gradient)) continue;
    if (best == nullptr || is_better(row, *best, problem)) best = &row;
  }
  return best;
}

}  // namespace flashattn
