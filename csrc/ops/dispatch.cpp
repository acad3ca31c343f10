#include "ops/dispatch.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "fwd_table.h"
#include "ops/tuned_table.h"

namespace flashattn {
namespace {

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

// All that the choice follows from. The table stays alive here, so another has another address.
auto choice_key(const FwdProblem& problem, const FwdTable& rows) {
  const FwdArgs& args = problem.args;
  return std::tuple(rows, problem.element, problem.rows_of_chunks, problem.changes_scores,
                    problem.arch, problem.compute_units, args.batch, args.seqlen_q, args.seqlen_k,
                    args.heads_q, args.heads_kv, args.head_dim, args.head_dim_v, args.window_left,
                    args.window_right, args.top_left, args.k.row_stride,
                    args.sequences.cu_seqlens_q != nullptr, args.sequences.seqused_k != nullptr);
}

// A model calls with the same few shapes in each of its layers, and to weigh the kernels for a
// small grid takes the host up to 0.15 ms.
class RecentChoices {
 public:
  const FwdChoice& get(const FwdProblem& problem, const FwdTable& rows) {
    Key key = choice_key(problem, rows);
    for (const Entry& entry : entries_) {
      if (entry.choice && entry.key == key) return *entry.choice;
    }
    Entry& oldest = entries_[next_++ % entries_.size()];
    oldest = {std::move(key), std::move(rank_fwd_kernels(problem, *rows).front())};
    return *oldest.choice;
  }

 private:
  using Key = decltype(choice_key(std::declval<FwdProblem>(), std::declval<FwdTable>()));

  struct Entry {
    Key key;
    std::optional<FwdChoice> choice;
  };
  std::array<Entry, 8> entries_;
  size_t next_ = 0;
};

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
      choices.push_back(estimate_fwd(problem, row));
    } else if (auto choice = estimate_fwd_split(problem, row)) {
      choices.push_back(std::move(*choice));
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
  const FwdTable rows = tuned_fwd_table(problem.arch);
  const std::string wanted = wanted_tile();
  if (wanted.empty()) {
    thread_local RecentChoices recent;
    return recent.get(problem, rows);
  }
  check_known(wanted, "FLASHATTN_ROCM_FWD_TILE");
  std::vector<FwdChoice> choices = rank_fwd_kernels(problem, *rows);
  for (FwdChoice& choice : choices) {
    if (wanted == choice.kernel.name) return std::move(choice);
  }
  return std::move(choices.front());
}

std::optional<std::string> set_fwd_tile(std::optional<std::string> name) {
  if (name) check_known(*name, "tile");
  const std::lock_guard lock(override_mutex);
  return std::exchange(override_tile, std::move(name));
}

}  // namespace flashattn
