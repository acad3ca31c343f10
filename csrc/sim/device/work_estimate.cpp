#include "device/work_estimate.h"

#include <cmath>
#include <numeric>
#include <span>

#include "device/dispatcher.h"

namespace fasim {
namespace {

// The grid is cut into ranges of neighbours; two sets of probes, one in each range, make two
// estimates.
constexpr uint64_t kRanges = 64, kSets = 2;
constexpr uint64_t kProbes = kRanges * kSets;

uint64_t range_begin(uint64_t range, uint64_t groups) { return range * groups / kRanges; }

// A probe and the next range's lie like a point and its mirror image: under a causal mask the work
// grows evenly from group to group, and their mean is then that of both ranges. The golden ratio
// moves the point from pair to pair, so that no period of the grid keeps step with it.
uint64_t probe_group(uint64_t set, uint64_t range, uint64_t groups) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const uint64_t begin = range_begin(range, groups), end = range_begin(range + 1, groups);
  const uint64_t pair = set * kRanges / 2 + range / 2;
  const double place = std::fmod(static_cast<double>(pair) * kGoldenRatio, 1.0);
  const auto offset = static_cast<uint64_t>(place * static_cast<double>(end - begin));
  return range % 2 == 0 ? begin + offset : end - 1 - offset;
}

std::vector<uint64_t> run(const Launch& launch, std::span<const uint64_t> groups) {
  std::vector<uint64_t> instructions(groups.size());
  dispatch(launch, groups, instructions);
  return instructions;
}

}  // namespace

WorkEstimate estimate_work(const Launch& launch, uint64_t groups) {
  if (groups <= kProbes) {
    std::vector<uint64_t> all(groups);
    std::iota(all.begin(), all.end(), uint64_t{0});
    return {.instructions = run(launch, all)};
  }
  std::vector<uint64_t> probes;
  for (uint64_t set = 0; set < kSets; ++set) {
    for (uint64_t range = 0; range < kRanges; ++range)
      probes.push_back(probe_group(set, range, groups));
  }
  const std::vector<uint64_t> probed = run(launch, probes);
  WorkEstimate estimate;
  double sums[kSets] = {0, 0};
  for (uint64_t range = 0; range < kRanges; ++range) {
    const uint64_t first = probed[range], second = probed[kRanges + range];
    const uint64_t size = range_begin(range + 1, groups) - range_begin(range, groups);
    estimate.instructions.insert(estimate.instructions.end(), size, (first + second) / 2);
    sums[0] += static_cast<double>(first * size);
    sums[1] += static_cast<double>(second * size);
  }
  estimate.error = std::abs(sums[0] - sums[1]) / (sums[0] + sums[1]);
  return estimate;
}

}  // namespace fasim
