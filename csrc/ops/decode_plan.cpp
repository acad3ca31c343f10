#include "ops/decode_plan.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/grid.h"
#include "decode_table.h"

namespace flashattn {
namespace {

// Of the kernels with the least padding of columns: the one with the fewest rows that holds all, or
// the most rows.
const DecodeKernel& choose(const DecodeProblem& problem) {
  const DecodeKernel* best = nullptr;
  const auto rank = [&](const DecodeKernel& kernel) {
    const int64_t rows = kernel.tile.rows;
    constexpr int64_t kAllHold = 1 << 20;
    return rows >= problem.rows ? rows : kAllHold - rows;
  };
  for (const DecodeKernel& kernel : kDecodeKernels) {
    if (kernel.element != problem.element || kernel.format != problem.format) continue;
    if (kernel.tile.head_dim < problem.columns || kernel.tile.rope != problem.rope) continue;
    if ((kernel.tile.access == Access::chunks) != problem.rows_of_chunks) continue;
    if (best == nullptr || kernel.tile.head_dim < best->tile.head_dim ||
        (kernel.tile.head_dim == best->tile.head_dim && rank(kernel) < rank(*best))) {
      best = &kernel;
    }
  }
  if (best == nullptr) {
    throw std::out_of_range(
        "no decode kernel for head_dim " + std::to_string(problem.columns) +
        (problem.format == KvFormat::plain
             ? ""
             : std::string(" of a cache of ") + name_of(problem.format)) +
        (problem.rows_of_chunks ? "" : " with rows that are not 4-byte aligned"));
  }
  return *best;
}

// The least time, counted in keys that one of the card's slots for workgroups streams while all
// share the memory. Workgroups run in rounds; a full one waits for memory, one that leaves slots
// empty for memory or, if that is slower, for its own instructions; and each has a beginning and an
// end in which little is under way. Tiles of the same keys read them from memory once. Of equal
// times the one with more splits, which fills more slots.
int64_t choose_splits(const DecodeProblem& problem, const DecodeKernel& kernel, int64_t tiles) {
  constexpr double kOfCombine = 2, kEqual = 1.02;
  constexpr double kBf16 = 1.6;  // fp32 arithmetic in place of dot2
  const double compute = kernel.compute_share * (kernel.element == Element::bf16 ? kBf16 : 1.0);
  const double memory = 1.0 / static_cast<double>(tiles);
  const int64_t slots = int64_t{problem.compute_units} * kernel.workgroups_per_cu;
  const int64_t workgroups = std::max<int64_t>(problem.batch * problem.heads_kv * tiles, 1);
  const int64_t most = std::clamp<int64_t>(problem.keys / kLeastSplitKeys, 1, kMaxSplits);
  int64_t best = 1;
  double least = 0.0;
  for (int64_t splits = 1; splits <= most; ++splits) {
    const auto keys = static_cast<double>(ceil_div(problem.keys, splits));
    const auto full = static_cast<double>(workgroups * splits / slots);
    const auto rest = static_cast<double>(workgroups * splits % slots);
    const double used = rest / static_cast<double>(slots);
    double time = full * (keys * std::max(memory, compute) + kRoundKeys);
    if (rest > 0) time += keys * std::max(used * memory, compute) + kRoundKeys;
    if (splits > 1) time += static_cast<double>(splits) * kOfCombine;
    if (splits == 1 || time <= least * kEqual) best = splits;
    least = splits == 1 ? time : std::min(least, time);
  }
  return best;
}

// To balance sequences by, or 0 where that cannot help: one sequence, or as many as fill the card
// without being split. Sequences that are not split need no launch that joins them, which is worth
// its 6 us only where a sequence can be long.
int64_t splits_at_once(const DecodeProblem& problem, const DecodeKernel& kernel, int64_t tiles,
                       int64_t splits) {
  constexpr int64_t kLongKeys = 8192;           // then at most 2 % of what reading them takes
  constexpr int64_t kMostWorkgroups = 1 << 24;  // that HIP allows in x, of 256 threads
  if (!problem.own_lengths || problem.batch < 2) return 0;
  const int64_t of_split = std::max<int64_t>(problem.heads_kv * tiles, 1);
  const int64_t slots = int64_t{problem.compute_units} * kernel.workgroups_per_cu;
  const int64_t at_once = std::clamp<int64_t>(slots / of_split, 1, kMaxSplits);
  if (splits == 1 && (at_once < 2 || problem.keys < kLongKeys)) return 0;
  const bool fits = of_split * (problem.batch * splits + at_once) < kMostWorkgroups;
  return fits ? at_once : 0;
}

}  // namespace

const char* name_of(KvFormat format) {
  switch (format) {
    case KvFormat::int8:
      return "int8";
    case KvFormat::e4m3:
      return "e4m3";
    case KvFormat::e5m2:
      return "e5m2";
    default:
      return "plain";
  }
}

int max_decode_columns(KvFormat format) {
  int most = 0;
  for (const DecodeKernel& kernel : kDecodeKernels) {
    if (kernel.format == format) most = std::max(most, kernel.tile.head_dim);
  }
  return most;
}

DecodePlan plan_decode(const DecodeProblem& problem, int64_t num_splits) {
  const DecodeKernel& kernel = choose(problem);
  const int64_t tiles = ceil_div(problem.rows, kernel.tile.rows);
  const int64_t splits = num_splits > 0 ? num_splits : choose_splits(problem, kernel, tiles);
  const int64_t at_once = num_splits > 0 ? 0 : splits_at_once(problem, kernel, tiles, splits);
  const int64_t slots = std::max(problem.batch * splits, at_once > 0 ? problem.batch + at_once : 0);
  return {kernel, static_cast<int>(tiles), static_cast<int>(splits), static_cast<int>(at_once),
          slots};
}

}  // namespace flashattn
