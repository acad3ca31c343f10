#include "timing/compute_unit.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace fasim {
namespace {

constexpr uint32_t kMaxVmem = 63, kMaxLgkm = 15;  // what the counters can hold

Cause cause_of(Issue issue) {
  switch (issue) {
    case Issue::valu:
      return Cause::valu;
    case Issue::scalar:
      return Cause::salu;
    case Issue::lds:
      return Cause::lds_pipe;
    case Issue::vmem:
      return Cause::vmem_issue;
    case Issue::branch:
    case Issue::internal:
      return Cause::control;
  }
  return Cause::control;
}

template <class Queue, class Done>
void drop_done(Queue& queue, uint64_t t, Done done) {
  while (!queue.empty() && done(queue.front()) <= t) queue.pop_front();
}

}  // namespace

CuCounters& CuCounters::operator+=(const CuCounters& other) {
  for (size_t i = 0; i < kCauses; ++i) causes[i] += other.causes[i];
  for (size_t i = 0; i < kInstClasses; ++i) instructions[i] += other.instructions[i];
  lanes_active += other.lanes_active;
  lds_conflict_clocks += other.lds_conflict_clocks;
  lds_busy_clocks += other.lds_busy_clocks;
  l1_requests += other.l1_requests;
  l1_hits += other.l1_hits;
  vmem_stalled_clocks += other.vmem_stalled_clocks;
  return *this;
}

ComputeUnit::ComputeUnit(const CardTiming& card, const Program& program,
                         const std::vector<InstTiming>& timing, MemorySystem& memory,
                         DeviceAddresses& addresses)
    : card_(card),
      timing_(timing),
      first_inst_(program.insts.data()),
      lds_(card, program),
      vector_memory_(card, memory, addresses),
      scalar_memory_(card, memory, addresses),
      book_(program) {
  for (int s = 0; s < kSimds; ++s) simds_[s].next = static_cast<uint64_t>(s);
}

CuCounters ComputeUnit::counters() const {
  CuCounters counters;
  counters.causes = book_.causes();
  counters.instructions = instructions_;
  counters.lanes_active = lanes_active_;
  counters.lds_conflict_clocks = lds_.conflict_clocks();
  counters.lds_busy_clocks = lds_.busy_clocks();
  counters.l1_requests = vector_memory_.requests();
  counters.l1_hits = vector_memory_.hits();
  counters.vmem_stalled_clocks = vector_memory_.stalled_clocks();
  return counters;
}

uint64_t ComputeUnit::instructions() const {
  return std::accumulate(instructions_.begin(), instructions_.end(), uint64_t{0});
}

void ComputeUnit::start(ResidentGroup* group, uint64_t now) {
  group->live = static_cast<uint32_t>(group->waves->size());
  group->arrived = 0;
  // A group's waves go to consecutive SIMDs, the first to the emptiest.
  int simd = static_cast<int>(
      std::ranges::min_element(simds_, {}, [](const Simd& s) { return s.slots.size(); }) -
      simds_.begin());
  for (Wave& wave : *group->waves) {
    auto slot = std::make_unique<Slot>();
    slot->wave = &wave;
    slot->group = group;
    slot->ready = now;
    slot->waiting = {Cause::control, wave.pc};
    slot->age = next_age_++;
    simds_[simd].slots.push_back(std::move(slot));
    cut_wait(simds_[simd], now);
    simd = (simd + 1) % kSimds;
    ++waves_in_flight_;
  }
}

void ComputeUnit::idle_until(uint64_t until) {
  for (int s = 0; s < kSimds; ++s) {
    Simd& simd = simds_[s];
    if (simd.next >= until) continue;
    const uint64_t visits = (until - simd.next + kVisit - 1) / kVisit;
    book_.add({}, visits * kVisit);
    simd.next += visits * kVisit;
  }
  now_ = std::max(now_, until);
}

ResidentGroup* ComputeUnit::run(uint64_t until) {
  while (ended_.empty()) {
    int s = 0;
    for (int i = 1; i < kSimds; ++i) {
      if (simds_[i].next < simds_[s].next) s = i;
    }
    const uint64_t t = simds_[s].next;
    if (t >= until) break;
    now_ = t;
    visit(s, t);
  }
  if (ended_.empty()) {
    now_ = std::max(now_, until);
    return nullptr;
  }
  ResidentGroup* group = ended_.back();
  ended_.pop_back();
  return group;
}

ComputeUnit::Obstacle ComputeUnit::obstacle(const InstTiming& timing, int simd,
                                            const Slot& slot) const {
  switch (timing.issue) {
    case Issue::valu:
      return {Cause::valu, simds_[simd].valu_free};
    case Issue::scalar:
    case Issue::branch:
      if (timing.is_smem && slot.lgkm.size() >= kMaxLgkm)
        return {Cause::smem_latency, slot.lgkm.front().done};
      return {Cause::salu, slot.scalar_ready};
    case Issue::lds:
      if (slot.lgkm.size() >= kMaxLgkm) return {Cause::lds_latency, slot.lgkm.front().done};
      return {Cause::lds_pipe, lds_.takes_from(simd)};
    case Issue::vmem:
      if (slot.vmem.size() >= kMaxVmem) return {Cause::vmem_latency, slot.vmem.front()};
      return {Cause::vmem_issue, vector_memory_.takes_from()};
    case Issue::internal:
      // A wave ends when L2 has its stores.
      if (timing.special != InstTiming::Special::end || slot.vmem.empty()) return {};
      return {Cause::vmem_latency, slot.vmem.back()};
  }
  return {};
}

void ComputeUnit::visit(int s, uint64_t t) {
  Simd& simd = simds_[s];
  std::array<bool, kIssueClasses> used{};
  Spending issued;   // what was sent, if it was nothing for the VALU
  Spending waiting;  // what the wave that can go on soonest waits for
  uint64_t soonest = kNever;
  uint64_t next = kNever;
  auto blocked_until = [&](uint64_t retry, const Spending& on) {
    if (retry >= soonest && waiting.cause != Cause::no_wave) return;
    soonest = std::min(soonest, retry);
    waiting = on;
  };
  for (const auto& owned : simd.slots) {
    Slot& slot = *owned;
    if (slot.ready > t) {
      blocked_until(slot.ready, slot.waiting);
      continue;
    }
    const Inst* const inst = slot.wave->pc;
    const InstTiming& timing = timing_[static_cast<size_t>(inst - first_inst_)];
    drop_done(slot.vmem, t, [](uint64_t done) { return done; });
    drop_done(slot.lgkm, t, [](const Outstanding& o) { return o.done; });
    bool& taken = used[static_cast<size_t>(timing.issue)];
    if (timing.issue != Issue::internal && taken) {
      blocked_until(t + kVisit, {Cause::control, inst});
      continue;
    }
    if (const Obstacle found = obstacle(timing, s, slot); found.until > t) {
      blocked_until(found.until, {found.cause, inst});
      continue;
    }
    taken = true;
    if (issued.cause == Cause::no_wave || issued.cause == Cause::control)
      issued = {cause_of(timing.issue), inst};
    issue(slot, s, t, timing);
    next = std::min(next, slot.ready);
  }
  std::erase_if(simd.slots,
                [](const auto& slot) { return slot->wave->state == Wave::State::ended; });
  next = std::min(next, soonest);
  // With every wave at a barrier or none at all, look again in the next turn.
  next = next == kNever ? t + kVisit : std::max(next, t + kVisit);
  if (waiting.cause == Cause::no_wave && !simd.slots.empty()) waiting = simd.slots.front()->waiting;
  book_visit(simd, t, next, issued, waiting);
}

// The clocks until the next visit: the VALU first, then what was sent, then the wait.
void ComputeUnit::book_visit(Simd& simd, uint64_t t, uint64_t next, const Spending& issued,
                             const Spending& waiting) {
  uint64_t clocks = (next - t + kVisit - 1) / kVisit * kVisit;
  simd.next = t + clocks;
  const uint64_t busy = std::min(clocks, simd.valu_free > t ? simd.valu_free - t : 0);
  book_.add({Cause::valu, simd.in_valu}, busy);
  clocks -= busy;
  if (busy == 0 && issued.cause != Cause::no_wave) {
    book_.add(issued, kVisit);
    clocks -= kVisit;
  }
  book_.add(waiting, clocks);
  simd.wait_begin = simd.next - clocks;
  simd.wait = waiting;
}

void ComputeUnit::issue(Slot& slot, int simd, uint64_t t, const InstTiming& timing) {
  Wave& wave = *slot.wave;
  const Inst& inst = *wave.pc;
  ++instructions_[static_cast<size_t>(inst.cls)];
  send(slot, simd, t, timing);  // reads addresses that the instruction may overwrite
  ++wave.pc;
  inst.run(wave, inst);
  ++wave.executed[static_cast<size_t>(inst.cls)];

  slot.ready = t + std::max<uint64_t>(timing.clocks, kVisit);
  slot.waiting = {timing.issue == Issue::valu ? Cause::valu : Cause::control, &inst};
  if (timing.issue == Issue::scalar) slot.waiting.cause = Cause::salu;
  if (timing.writes_scalar) slot.scalar_ready = t + card_.valu_to_salu;
  if (timing.issue == Issue::branch && wave.pc != &inst + 1) {
    slot.ready = t + card_.branch_taken;
    slot.waiting.cause = Cause::fetch;
  }
  if (timing.issue == Issue::internal) issue_special(slot, t, inst, timing);
  if (timeline_ != nullptr) note(slot, simd, t, timing);
}

// Hands the wave's next instruction to its unit.
void ComputeUnit::send(Slot& slot, int simd, uint64_t t, const InstTiming& timing) {
  Wave& wave = *slot.wave;
  if (timing.is_smem) slot.lgkm.push_back({scalar_memory_.send(wave, timing, t), true});
  switch (timing.issue) {
    case Issue::valu:
      lanes_active_ += static_cast<uint64_t>(std::popcount(wave.exec()));
      simds_[simd].valu_free = t + timing.clocks;
      simds_[simd].in_valu = wave.pc;
      break;
    case Issue::lds:
      slot.lgkm.push_back({lds_.send(wave, timing, simd, t), false});
      break;
    case Issue::vmem: {
      const uint64_t last = slot.vmem.empty() ? 0 : slot.vmem.back();
      // vmcnt counts down in order.
      slot.vmem.push_back(std::max(last, vector_memory_.send(wave, timing, t)));
      break;
    }
    case Issue::scalar:
    case Issue::branch:
    case Issue::internal:
      break;
  }
}

void ComputeUnit::note(const Slot& slot, int simd, uint64_t t, const InstTiming& timing) {
  constexpr std::array<const char*, kIssueClasses> kKinds = {"valu", "scalar", "vmem",
                                                             "lds",  "branch", "internal"};
  // A wait's end is known when it ends: arrive() notes barriers, and the other waits show as gaps.
  if (timeline_->full() || timing.issue == Issue::internal) return;
  const char* kind = timing.is_smem ? "smem" : kKinds[static_cast<size_t>(timing.issue)];
  uint64_t done = slot.ready;
  if (timing.issue == Issue::vmem) done = slot.vmem.back();
  if (timing.issue == Issue::lds || timing.is_smem) done = slot.lgkm.back().done;
  timeline_->add({simd, slot.age, t, done - t, kind});
}

}  // namespace fasim
