#include "ops/fwd_estimate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/grid.h"

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

// What a piece of a cut query block takes beside its steps, and at what rate all partial results
// pass: that of HBM, since with Q, K and V they are more than L2 holds. D128 at B1 H8 S 512 causal:
// with 162 partial results 95,300 clocks, with 96 of them 91,100.
constexpr double kPieceClocks = 2500, kMergeClocks = 700, kPartialBytesPerClock = 600;

// Fewer rounds of unequal workgroups are laid out one by one. D64 with 32x128 at B1 H8 S 512
// causal, 2.1 rounds, takes 85,900 clocks where workgroups that fill all gaps would take 62,200.
constexpr int64_t kFewRounds = 8;

struct Work {
  int64_t steps;
  double other;  // clocks
};

// A compute unit and its workgroups, each slower the more there are.
class ComputeUnit {
 public:
  explicit ComputeUnit(const FwdKernel& kernel) : kernel_(&kernel) {}

  void start(const Work& work) { residents_.push_back({work, 1.0}); }
  bool busy() const { return !residents_.empty(); }

  double next_end() const {
    double end = std::numeric_limits<double>::infinity();
    for (const Resident& it : residents_) end = std::min(end, now_ + it.left * clocks(it.work));
    return end;
  }

  // Ends those that are done by then.
  void advance(double to) {
    for (Resident& it : residents_) it.left -= (to - now_) / clocks(it.work);
    now_ = to;
    std::erase_if(residents_, [](const Resident& it) { return it.left < 1e-9; });
  }

 private:
  struct Resident {
    Work work;
    double left;  // a fraction
  };

  // At least one, whatever a configuration claims: work that takes no time would never end.
  double clocks(const Work& work) const {
    const double step = step_clocks(*kernel_, std::ssize(residents_));
    return std::max(1.0,
                    kernel_->clocks.fixed + work.other + static_cast<double>(work.steps) * step);
  }

  const FwdKernel* kernel_;
  std::vector<Resident> residents_;
  double now_ = 0.0;
};

// In this order: first one for each compute unit, and so on until all places are taken; then each
// goes where one becomes free, as the card does it.
double clocks_of(const FwdKernel& kernel, const std::vector<Work>& works, int64_t compute_units) {
  const auto units = static_cast<size_t>(compute_units);
  std::vector<ComputeUnit> unit(std::min(units, works.size()), ComputeUnit(kernel));
  size_t next = 0;
  for (; next < std::min(units * kernel.workgroups_per_cu, works.size()); ++next)
    unit[next % units].start(works[next]);
  using End = std::pair<double, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  for (size_t i = 0; i < unit.size(); ++i) ends.emplace(unit[i].next_end(), i);
  double now = 0.0;
  while (!ends.empty()) {
    const size_t i = ends.top().second;
    now = ends.top().first;
    ends.pop();
    unit[i].advance(now);
    if (next < works.size()) unit[i].start(works[next++]);
    if (unit[i].busy()) ends.emplace(unit[i].next_end(), i);
  }
  return now;
}

// As the kernel gets them.
FwdArgs args_for(const FwdProblem& problem, const FwdKernel& kernel) {
  FwdArgs args = problem.args;
  args.heads_together = heads_together(args, kernel.tile, kernel.element, problem.compute_units);
  return args;
}

FwdChoice estimate_split(const FwdProblem& problem, const FwdKernel& kernel, SplitPlan plan) {
  const Steps steps = count_steps(problem.args, kernel.tile);
  const double rounds =
      plan.whole / (static_cast<double>(problem.compute_units) * kernel.workgroups_per_cu);
  const double round =
      kernel.clocks.fixed + steps.mean * step_clocks(kernel, kernel.workgroups_per_cu);
  std::vector<Work> works;
  int most_slots = 0;
  for (const SplitPiece& piece : plan.pieces) {
    works.push_back({piece.last - piece.first, piece.slots > 1 ? kPieceClocks : 0.0});
    most_slots = std::max<int>(most_slots, piece.slots);
  }
  const double partial_bytes = 4.0 * plan.slots * kernel.tile.block_m * kernel.tile.head_dim_v;
  const double total = rounds * round + clocks_of(kernel, works, problem.compute_units) +
                       most_slots * kMergeClocks + partial_bytes / kPartialBytesPerClock;
  const uint32_t workgroups = plan.workgroups();
  return {kernel, workgroups, steps.mean, total, std::move(plan)};
}

}  // namespace

FwdChoice estimate_fwd(const FwdProblem& problem, const FwdKernel& kernel) {
  const FwdArgs& args = problem.args;
  const Steps steps = count_steps(args, kernel.tile);
  const int64_t workgroups =
      int64_t{ceil_div(args.seqlen_q, kernel.tile.block_m)} * args.heads_q * args.batch;
  const auto clocks = [&](double count, int64_t together) {
    return kernel.clocks.fixed + count * step_clocks(kernel, together);
  };
  const int64_t slots = int64_t{problem.compute_units} * kernel.workgroups_per_cu;
  const int64_t last_round = workgroups % slots;
  const double full = clocks(steps.mean, kernel.workgroups_per_cu);
  // Equal workgroups run in rounds. Unequal ones fill the gaps of each other, heaviest first; how
  // well, few of them decide by themselves.
  double total = static_cast<double>(workgroups / slots) * full;
  if (static_cast<double>(steps.most) == steps.mean) {
    if (last_round > 0) total += clocks(steps.mean, ceil_div(last_round, problem.compute_units));
  } else if (workgroups < kFewRounds * slots) {
    std::vector<Work> works;
    for (const int64_t count : steps_of_items(args_for(problem, kernel), kernel.tile))
      works.push_back({count, 0.0});
    total = clocks_of(kernel, works, problem.compute_units);
  } else {
    total += static_cast<double>(last_round) / static_cast<double>(slots) * full;
  }
  return {kernel, workgroups, steps.mean, total, std::nullopt};
}

std::optional<FwdChoice> estimate_fwd_split(const FwdProblem& problem, const FwdKernel& kernel) {
  std::optional<FwdChoice> best;
  const int64_t at_once = int64_t{problem.compute_units} * kernel.workgroups_per_cu;
  for (SplitPlan& plan : split_plans(args_for(problem, kernel), kernel.tile, at_once)) {
    FwdChoice choice = estimate_split(problem, kernel, std::move(plan));
    if (!best || choice.clocks < best->clocks) best = std::move(choice);
  }
  return best;
}

}  // namespace flashattn
