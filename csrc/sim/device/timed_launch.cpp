#include "device/timed_launch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <queue>

#include "device/dispatcher.h"
#include "device/work_estimate.h"

namespace fasim {
namespace {

// A card filled four times shows cold caches, steady state and tail, and is simulated in seconds.
constexpr uint64_t kWholeFills = 4;

std::vector<uint64_t> complement(const std::vector<uint64_t>& sorted, uint64_t groups) {
  std::vector<uint64_t> rest;
  rest.reserve(groups - sorted.size());
  auto next = sorted.begin();
  for (uint64_t group = 0; group < groups; ++group) {
    if (next != sorted.end() && *next == group) {
      ++next;
    } else {
      rest.push_back(group);
    }
  }
  return rest;
}

std::vector<InstructionCost> costs(const Program& program, const KernelTime& timed) {
  std::vector<InstructionCost> costs;
  for (size_t i = 0; i < program.insts.size(); ++i) {
    const uint64_t clocks = timed.clocks_by_instruction[i], conflicts = timed.lds_conflicts[i];
    if (clocks == 0 && conflicts == 0) continue;
    costs.push_back(
        {uint64_t{program.dword_offset[i]} * 4, program.disassembly[i], clocks, conflicts});
  }
  return costs;
}

// FLASHATTN_SIM_TIMELINE: how many issues of CU 0 the profile tells of; not set: none.
size_t timeline_entries() {
  const char* asked = std::getenv("FLASHATTN_SIM_TIMELINE");
  return asked == nullptr ? 0 : std::strtoull(asked, nullptr, 10);
}

// Of a launch of which only a sample runs: enough to see the steady state of a long inner loop, and
// simulated in some five seconds.
constexpr uint64_t kSampledInstructions = 50'000'000;

// Groups go in order to whichever of `seats` is free first; returns when the last has ended. Work
// and result are in instructions of one group.
double schedule(const std::vector<uint64_t>& work, uint64_t seats) {
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> free_at;
  uint64_t end = 0;
  for (uint64_t instructions : work) {
    uint64_t begin = 0;
    if (free_at.size() == seats) {
      begin = free_at.top();
      free_at.pop();
    }
    free_at.push(begin + instructions);
    end = std::max(end, begin + instructions);
  }
  return static_cast<double>(end);
}

// The launch takes as much longer than the sample as a plain schedule of all its groups, whose
// instruction counts are known, takes longer than one of the sample's: so uneven groups and a last
// round that fills few CUs count. A sample that was cut off has no schedule: all its seats were
// busy.
void extrapolate(LaunchProfile& profile, const std::vector<uint64_t>& work, uint64_t seats) {
  const KernelTime& timed = profile.timed;
  profile.clocks = static_cast<double>(timed.clocks);
  if (profile.groups == timed.groups && timed.complete) return;
  const double sample = timed.complete ? schedule(timed.group_instructions, seats)
                                       : static_cast<double>(timed.instructions) /
                                             static_cast<double>(std::min(timed.groups, seats));
  profile.clocks *= schedule(work, seats) / sample;
  const double rate =
      static_cast<double>(timed.instructions_before_drain) / static_cast<double>(timed.drain_begin);
  profile.sampling_error = std::abs(timed.rate_second_half - timed.rate_first_half) / (2 * rate);
}

// By instructions. But a sample that was cut off in its inner loop has seen every group's beginning
// and a tenth of its loop: what is read once (Q) counts once a group, as the second half of the
// sample, which is all loop, tells it from the rest. Of D128 at 32768 keys Q would count tenfold.
LevelBytes bytes_of_launch(const LaunchProfile& profile) {
  const KernelTime& timed = profile.timed;
  const Traffic& half = timed.half_way;
  const bool in_loop = !timed.complete && half.groups == timed.groups;
  const auto all = static_cast<double>(profile.instructions);
  const auto whole = [&](uint64_t at_half, uint64_t at_end) {
    const uint64_t since = in_loop ? at_half : 0, begin = in_loop ? half.instructions : 0;
    const double rate = static_cast<double>(at_end - since) /
                        static_cast<double>(std::max<uint64_t>(1, timed.instructions - begin));
    const double once =
        std::max(0.0, static_cast<double>(since) - rate * static_cast<double>(begin));
    const double groups = static_cast<double>(profile.groups) / static_cast<double>(timed.groups);
    return static_cast<uint64_t>(std::llround(once * groups + rate * all));
  };
  const MemoryCounters& then = half.memory;
  const MemoryCounters& now = timed.memory;
  const uint64_t line = profile.card.line_bytes;
  return {.l1 = line * whole(half.l1_requests, timed.cus.l1_requests),
          .l2 = line * whole(then.l2_requests, now.l2_requests),
          .hbm_read = whole(then.hbm_read_bytes, now.hbm_read_bytes),
          .hbm_write = whole(then.hbm_write_bytes, now.hbm_write_bytes)};
}

// Runs the groups that were not timed; returns the instructions of every group.
std::vector<uint64_t> run_the_rest(const Launch& launch, const std::vector<uint64_t>& sample,
                                   const LaunchProfile& profile) {
  const std::vector<uint64_t> rest = complement(sample, profile.groups);
  std::vector<uint64_t> rest_work(rest.size());
  dispatch(launch, rest, rest_work);
  std::vector<uint64_t> work(profile.groups);
  for (size_t i = 0; i < sample.size(); ++i) work[sample[i]] = profile.timed.group_instructions[i];
  for (size_t i = 0; i < rest.size(); ++i) work[rest[i]] = rest_work[i];
  return work;
}

}  // namespace

std::vector<uint64_t> sample_groups(uint64_t groups, uint64_t card_capacity) {
  std::vector<uint64_t> sample;
  const auto add = [&](uint64_t begin, uint64_t end) {
    for (uint64_t group = begin; group < std::min(end, groups); ++group) sample.push_back(group);
  };
  if (groups <= kWholeFills * card_capacity) {
    add(0, groups);
  } else {
    add(0, card_capacity);
    add(groups / 2, groups / 2 + card_capacity);
  }
  return sample;
}

LaunchProfile timed_launch(const CardTiming& card, const Launch& launch,
                           const KernelResources& resources, const Occupancy& occupancy,
                           bool sampled_only) {
  LaunchProfile profile;
  profile.kernel = launch.kernel_name;
  std::copy_n(launch.grid, 3, profile.grid);
  std::copy_n(launch.block, 3, profile.block);
  profile.resources = resources;
  profile.occupancy = occupancy;
  profile.card = card;
  profile.groups = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const uint64_t seats = uint64_t{card.compute_units} * occupancy.groups_per_cu;
  const std::vector<uint64_t> sample = sample_groups(profile.groups, seats);
  TimerLimits limits{.timeline_entries = timeline_entries()};
  if (sampled_only) limits.instructions = kSampledInstructions;
  profile.timed = time_groups(card, launch, occupancy.groups_per_cu, sample, limits);
  profile.by_instruction = costs(*launch.program, profile.timed);

  const bool all_timed = profile.timed.complete && sample.size() == profile.groups;
  WorkEstimate work;
  if (sampled_only && !all_timed) {
    work = estimate_work(launch, profile.groups);
  } else {
    work.instructions = run_the_rest(launch, sample, profile);
  }
  profile.instructions =
      std::accumulate(work.instructions.begin(), work.instructions.end(), uint64_t{0});
  extrapolate(profile, work.instructions, seats);
  profile.sampling_error += work.error;
  profile.bytes = bytes_of_launch(profile);
  return profile;
}

}  // namespace fasim
