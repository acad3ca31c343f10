#include "timing/kernel_timer.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "exec/initial_state.h"
#include "exec/register_check.h"

namespace fasim {
namespace {

// CUs advance in turns of this many clocks, so that their requests reach L2 nearly in order.
constexpr uint64_t kTurn = 64;

void add(std::vector<uint64_t>& sums, const std::vector<uint64_t>& more) {
  std::ranges::transform(sums, more, sums.begin(), std::plus{});
}

// What one resident workgroup occupies; reused.
struct Seat {
  explicit Seat(const Launch& launch)
      : registers(*launch.program, launch.descriptor.vgprs(), allocated_sgprs(launch.descriptor)),
        port(launch.memory),
        memory(launch) {
    port.add_launch_range(launch.kernarg, (launch.kernarg_size + 15ull) / 16 * 16,
                          "kernarg segment");
    if (launch.dispatch_packet)
      port.add_launch_range(launch.dispatch_packet, 64, "dispatch packet");
  }
  RegisterCheck registers;
  MemoryPort port;
  WorkgroupMemory memory;
  ResidentGroup resident;
  size_t index = 0;  // of the group among those to be timed

  uint64_t instructions() const {
    uint64_t sum = 0;
    for (const Wave& wave : memory.waves) sum += wave.instructions();
    return sum;
  }
};

class Card {
 public:
  Card(const CardTiming& card, const Launch& launch, uint32_t groups_per_cu,
       const std::vector<uint64_t>& groups, const TimerLimits& limits)
      : card_(card),
        launch_(launch),
        groups_(groups),
        timing_(time_instructions(*launch.program, card)),
        memory_(card),
        addresses_(*launch.memory),
        timeline_(limits.timeline_entries),
        instruction_limit_(limits.instructions),
        group_instructions_(groups.size()) {
    for (uint32_t i = 0; i < card.compute_units; ++i) {
      cus_.emplace_back(card_, *launch.program, timing_, memory_, addresses_);
    }
    if (limits.timeline_entries > 0) cus_.front().record(&timeline_);
    for (uint32_t seat = 0; seat < groups_per_cu; ++seat) {
      for (ComputeUnit& cu : cus_) start_next(cu, 0);
    }
  }

  KernelTime run() {
    uint64_t now = 0;
    while (running_ > 0 && executed() < instruction_limit_) {
      now += kTurn;
      for (ComputeUnit& cu : cus_) advance(cu, now);
      note_rate(now);
      if (half_way_.instructions == 0 && executed() >= instruction_limit_ / 2)
        half_way_ = {executed(), next_, counters().l1_requests, memory_.counters()};
    }
    if (running_ > 0) cut_off(now);
    // An idle CU gets no more groups: they were all given out when it ran dry.
    for (ComputeUnit& cu : cus_) cu.idle_until(end_);
    memory_.flush();
    return result();
  }

 private:
  void cut_off(uint64_t now) {
    end_ = now;
    if (drained_at_ != 0) return;
    drain_begin_ = now;
    progress_.push_back({now, executed()});
  }

  void advance(ComputeUnit& cu, uint64_t until) {
    while (!cu.idle()) {
      ResidentGroup* ended = cu.run(until);
      if (!ended) return;
      --running_;
      end_ = std::max(end_, cu.now());
      auto* const seat = static_cast<Seat*>(ended->owner);
      group_instructions_[seat->index] = seat->instructions();
      free_.push_back(seat);
      start_next(cu, cu.now());
    }
  }

  void start_next(ComputeUnit& cu, uint64_t now) {
    if (next_ == groups_.size()) return;
    const uint64_t group = groups_[next_];
    Seat* seat = take_seat();
    seat->index = next_++;
    const uint64_t row = group / launch_.grid[0];
    const uint32_t id[3] = {static_cast<uint32_t>(group % launch_.grid[0]),
                            static_cast<uint32_t>(row % launch_.grid[1]),
                            static_cast<uint32_t>(row / launch_.grid[1])};
    seat->memory.reset(launch_, id, seat->port, seat->registers);
    seat->resident = {.waves = &seat->memory.waves, .owner = seat};
    cu.start(&seat->resident, now + card_.workgroup_launch);
    ++running_;
    if (next_ == groups_.size()) drain_begin_ = now;
  }

  Seat* take_seat() {
    if (free_.empty()) {
      seats_.push_back(std::make_unique<Seat>(launch_));
      Seat* const seat = seats_.back().get();
      addresses_.place(seat->memory.scratch_begin(), seat->memory.scratch_bytes());
      return seat;
    }
    Seat* seat = free_.back();
    free_.pop_back();
    return seat;
  }

  uint64_t executed() const {
    uint64_t n = 0;
    for (const ComputeUnit& cu : cus_) n += cu.instructions();
    return n;
  }
  CuCounters counters() const {
    CuCounters sum;
    for (const ComputeUnit& cu : cus_) sum += cu.counters();
    return sum;
  }
  void note_rate(uint64_t now) {
    if (next_ == groups_.size() && drained_at_ == 0) {
      drained_at_ = now;
      progress_.push_back({now, executed()});
    } else if (drained_at_ == 0 && now % (kTurn * 64) == 0) {
      progress_.push_back({now, executed()});
    }
  }

  KernelTime result() const {
    KernelTime time;
    time.clocks = end_;
    time.drain_begin = drain_begin_;
    time.groups = next_;
    time.complete = running_ == 0;
    time.instructions = executed();
    time.group_instructions = group_instructions_;
    time.memory = memory_.counters();
    time.clocks_by_instruction.resize(timing_.size());
    time.lds_conflicts.resize(timing_.size());
    time.cus = counters();
    time.half_way = half_way_;
    for (const ComputeUnit& cu : cus_) {
      add(time.clocks_by_instruction, cu.clocks());
      add(time.lds_conflicts, cu.lds_conflicts());
    }
    time.timeline = timeline_.entries();
    rates(time);
    return time;
  }
  void rates(KernelTime& time) const {
    if (drain_begin_ == 0 || progress_.empty()) return;
    const Progress end = progress_.back();
    time.instructions_before_drain = end.instructions;
    const auto half = std::ranges::lower_bound(progress_, end.clock / 2, {}, &Progress::clock);
    const auto clocks = static_cast<double>(half->clock);
    time.rate_first_half = static_cast<double>(half->instructions) / clocks;
    if (end.clock > half->clock) {
      time.rate_second_half = static_cast<double>(end.instructions - half->instructions) /
                              static_cast<double>(end.clock - half->clock);
    }
  }

  struct Progress {
    uint64_t clock, instructions;
  };
  const CardTiming card_;
  const Launch& launch_;
  const std::vector<uint64_t>& groups_;
  const std::vector<InstTiming> timing_;
  MemorySystem memory_;
  DeviceAddresses addresses_;
  Timeline timeline_;
  const uint64_t instruction_limit_;
  std::vector<uint64_t> group_instructions_;
  std::vector<ComputeUnit> cus_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<Seat*> free_;
  std::vector<Progress> progress_;
  Traffic half_way_;
  size_t next_ = 0;
  uint64_t running_ = 0, end_ = 0, drain_begin_ = 0, drained_at_ = 0;
};

}  // namespace

KernelTime time_groups(const CardTiming& card, const Launch& launch, uint32_t groups_per_cu,
                       const std::vector<uint64_t>& groups, const TimerLimits& limits) {
  return Card(card, launch, groups_per_cu, groups, limits).run();
}

}  // namespace fasim
