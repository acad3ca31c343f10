#include "ops/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "core/grid.h"
#include "fwd_table.h"
#include "ops/split_plan.h"
#include "ops/tuned_table.h"

namespace flashattn {
namespace {

// Key blocks that a query block visits.
struct Steps {
  double mean;
  int64_t most;
};

// Query blocks are alike apart from where the mask cuts them, so 64 of them tell the mean.
Steps count_steps(const FwdArgs& args, const Tile& tile) {
  constexpr int64_t kSamples = 64;
  const int64_t blocks = ceil_div(args.seqlen_q, tile.block_m);
  const int64_t samples = std::min(blocks, kSamples);
  int64_t sum = 0, most = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t steps = steps_of(args, tile, i * blocks / samples * tile.block_m);
    sum += steps;
    most = std::max(most, steps);
  }
  return {static_cast<double>(sum) / static_cast<double>(samples), most};
}

// Clocks of a step with `together` workgroups on the compute unit, between the two that were
// measured.
double step_clocks(const FwdKernel& kernel, int64_t together) {
  if (kernel.workgroups_per_cu == 1) return kernel.clocks.step;
  const double share = static_cast<double>(together - 1) / (kernel.workgroups_per_cu - 1);
  return kernel.clocks.step + share * (kernel.clocks.step_full - kernel.clocks.step);
}

// What the combine kernel and its launch take; the partial results are small.
constexpr double kCombineClocks = 24000;

// Each piece goes to the slot that is free first, as the card does it.
double clocks_of_pieces(const FwdKernel& kernel, const SplitPlan& plan, int64_t compute_units) {
  const auto slots = static_cast<size_t>(compute_units * kernel.workgroups_per_cu);
  const auto together = ceil_div(static_cast<int32_t>(std::min(slots, plan.pieces.size())),
                                 static_cast<int32_t>(compute_units));
  std::vector<double> free_at(slots, 0.0);
  for (const SplitPiece& piece : plan.pieces) {
    std::ranges::pop_heap(free_at, std::greater{});
    free_at.back() +=
        kernel.clocks.fixed + (piece.last - piece.first) * step_clocks(kernel, together);
    std::ranges::push_heap(free_at, std::greater{});
  }
  return std::ranges::max(free_at);
}

// Nothing where it is of no use.
std::optional<SplitPlan> split_plan(const FwdProblem& problem, const FwdKernel& kernel) {
  FwdArgs args = problem.args;
  args.heads_together = heads_together(args, kernel.tile, kernel.element, problem.compute_units);
  return plan_split(args, kernel.tile, int64_t{problem.compute_units} * kernel.workgroups_per_cu);
}

FwdChoice estimate_split(const FwdProblem& problem, const FwdKernel& kernel, SplitPlan plan) {
  const Steps steps = count_steps(problem.args, kernel.tile);
  const double rounds =
      plan.whole / (static_cast<double>(problem.compute_units) * kernel.workgroups_per_cu);
  const double round =
      kernel.clocks.fixed + steps.mean * step_clocks(kernel, kernel.workgroups_per_cu);
  const double total =
      rounds * round + clocks_of_pieces(kernel, plan, problem.compute_units) + kCombineClocks;
  const uint32_t workgroups = plan.workgroups();
  return {kernel, workgroups, steps.mean, total, std::move(plan)};
}

FwdChoice estimate(const FwdProblem& problem, const FwdKernel& kernel) {
  const FwdArgs& args = problem.args;
  const Steps steps = count_steps(args, kernel.tile);
  const int64_t workgroups =
      int64_t{ceil_div(args.seqlen_q, kernel.tile.block_m)} * args.heads_q * args.batch;
  const auto clocks = [&](double count, int64_t together) {
    return kernel.clocks.fixed + count * step_clocks(kernel, together);
  };
  const int64_t slots = int64_t{problem.compute_units} * kernel.workgroups_per_cu;
  const int64_t last_round = workgroups % slots;
  const int64_t last_together = (last_round + problem.compute_units - 1) / problem.compute_units;
  const double full = clocks(steps.mean, kernel.workgroups_per_cu);
  // Equal workgroups run in rounds. Unequal ones fill the gaps of each other, heaviest first, but
  // none can be cut in two.
  double total = static_cast<double>(workgroups / slots) * full;
  if (static_cast<double>(steps.most) > steps.mean) {
    total += static_cast<double>(last_round) / static_cast<double>(slots) * full;
    total = std::max(total, clocks(static_cast<double>(steps.most),
                                   std::min<int64_t>(workgroups / problem.compute_units + 1,
                                                     kernel.workgroups_per_cu)));
  } else if (last_round > 0) {
    total += clocks(steps.mean, last_together);
  }
  return {kernel, workgroups, steps.mean, total, std::nullopt};
}

bool serves(const FwdKernel& kernel, const FwdProblem& problem) {
  const Tile& tile = kernel.tile;
  if (kernel.element != problem.element) return false;
  if (tile.head_dim < problem.args.head_dim || tile.head_dim_v < problem.args.head_dim_v) {
    return false;
  }
  // Element by element everything is served, slowly: where nothing else is, it wins all the same.
  if (tile.access == Access::elements) return true;
  return problem.rows_of_chunks && (tile.scores == Scores::modified) == problem.changes_scores;
}

std::mutex override_mutex;
std::optional<std::string> override_tile;

std::string wanted_tile() {
  {
    const std::lock_guard lock(override_mutex);
    if (override_tile) return *override_tile;
  }
  const char* name = std::getenv("FLASHATTN_ROCM_FWD_TILE");
  return name == nullptr ? "" : name;
}

void check_known(const std::string& name, const char* from) {
  if (std::ranges::any_of(kFwdKernels, [&](const FwdKernel& row) { return name == row.name; })) {
    return;
  }
  std::string known;
  for (const FwdKernel& row : kFwdKernels)
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  throw std::invalid_argument(std::string(from) + "='" + name +
                              "' is no kernel of this build; there are " + known);
}

}  // namespace

std::span<const FwdKernel> fwd_kernels() { return kFwdKernels; }

int max_head_dim(Element element) {
  int most = 0;
  for (const FwdKernel& row : kFwdKernels) {
    if (row.element == element) most = std::max(most, row.tile.head_dim);
  }
  return most;
}

std::vector<FwdChoice> rank_fwd_kernels(const FwdProblem& problem,
                                        std::span<const FwdKernel> rows) {
  std::vector<FwdChoice> choices;
  int columns = 0;
  for (const FwdKernel& row : rows) {
    if (!serves(row, problem)) continue;
    const int its = row.tile.head_dim + row.tile.head_dim_v;
    if (columns != 0 && its > columns) continue;
    if (its < columns) choices.clear();
    columns = its;
    if (!row.split) {
      choices.push_back(estimate(problem, row));
    } else if (auto plan = split_plan(problem, row)) {
      choices.push_back(estimate_split(problem, row, std::move(*plan)));
    }
  }
  if (choices.empty()) {
    throw std::out_of_range(
        "no forward kernel for head_dim " + std::to_string(problem.args.head_dim) +
        " and head_dim_v " + std::to_string(problem.args.head_dim_v) +
        (problem.rows_of_chunks ? "" : " with rows that are not 4-byte aligned"));
  }
  std::ranges::stable_sort(choices, {}, &FwdChoice::clocks);
  return choices;
}

std::vector<FwdChoice> rank_fwd_kernels(const FwdProblem& problem) {
  return rank_fwd_kernels(problem, *tuned_fwd_table(problem.arch));
}

FwdChoice choose_fwd_kernel(const FwdProblem& problem) {
  const std::vector<FwdChoice> choices = rank_fwd_kernels(problem);
  const std::string wanted = wanted_tile();
  if (wanted.empty()) return choices.front();
  check_known(wanted, "FLASHATTN_ROCM_FWD_TILE");
  for (const FwdChoice& choice : choices) {
    if (wanted == choice.kernel.name) return choice;
  }
  return choices.front();
}

std::optional<std::string> set_fwd_tile(std::optional<std::string> name) {
  if (name) check_known(*name, "tile");
  const std::lock_guard lock(override_mutex);
  return std::exchange(override_tile, std::move(name));
}

}  // namespace flashattn
