#include "timing/compute_unit.h"

#include <algorithm>
#include <bit>

#include "isa/opcodes.h"
#include "timing/lane_lines.h"

namespace fasim {
namespace {

constexpr uint64_t kVisit = 4;                    // clocks between two visits of a SIMD
constexpr uint32_t kMaxVmem = 63, kMaxLgkm = 15;  // what the counters can hold

uint64_t ceil_clock(double clock) { return static_cast<uint64_t>(clock + 0.999999); }

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
  for (size_t i = 0; i < kIssueClasses; ++i) issued[i] += other.issued[i];
  lanes_active += other.lanes_active;
  lds_conflict_clocks += other.lds_conflict_clocks;
  lds_busy_clocks += other.lds_busy_clocks;
  l1_requests += other.l1_requests;
  l1_hits += other.l1_hits;
  vmem_stalled_clocks += other.vmem_stalled_clocks;
  return *this;
}

ComputeUnit::ComputeUnit(const CardTiming& card, const std::vector<InstTiming>& timing,
                         const Inst* first_inst, MemorySystem& memory, DeviceAddresses& addresses)
    : card_(card),
      timing_(timing),
      first_inst_(first_inst),
      memory_(memory),
      addresses_(addresses),
      lds_memos_(timing.size()),
      l1_(card.l1_bytes, card.l1_ways, card.line_bytes),
      scalar_cache_(card.scalar_cache_bytes, 4, card.line_bytes),
      lds_conflicts_(timing.size()) {
  for (int s = 0; s < kSimds; ++s) simds_[s].next = static_cast<uint64_t>(s);
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
    book(Cause::no_wave, visits * kVisit);
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

bool ComputeUnit::can_take(const InstTiming& timing, int simd, const Slot& slot, uint64_t t,
                           Cause& blocked, uint64_t& retry) const {
  switch (timing.issue) {
    case Issue::valu:
      if (simds_[simd].valu_free <= t) return true;
      blocked = Cause::valu, retry = simds_[simd].valu_free;
      return false;
    case Issue::scalar:
    case Issue::branch:
      if (timing.is_smem && slot.lgkm.size() >= kMaxLgkm) {
        blocked = Cause::smem_latency, retry = slot.lgkm.front().done;
        return false;
      }
      if (slot.scalar_ready <= t) return true;
      blocked = Cause::salu, retry = slot.scalar_ready;
      return false;
    case Issue::lds: {
      if (slot.lgkm.size() >= kMaxLgkm) {
        blocked = Cause::lds_latency, retry = slot.lgkm.front().done;
        return false;
      }
      const uint64_t backlog = card_.lds_queue * 16ull;
      if (lds_port_free_[simd / 2] <= t + backlog) return true;
      blocked = Cause::lds_pipe, retry = lds_port_free_[simd / 2] - backlog;
      return false;
    }
    case Issue::vmem: {
      if (slot.vmem.size() >= kMaxVmem) {
        blocked = Cause::vmem_latency, retry = slot.vmem.front();
        return false;
      }
      const uint64_t backlog = card_.vmem_queue * 16ull;
      if (address_free_ <= t + backlog) return true;
      blocked = Cause::vmem_issue, retry = address_free_ - backlog;
      return false;
    }
    case Issue::internal:
      // A wave ends when L2 has its stores.
      if (timing.special != InstTiming::Special::end || slot.vmem.empty()) return true;
      blocked = Cause::vmem_latency, retry = slot.vmem.back();
      return false;
  }
  return true;
}

void ComputeUnit::visit(int s, uint64_t t) {
  Simd& simd = simds_[s];
  std::array<bool, kIssueClasses> used{};
  Cause issued = Cause::no_wave;   // what was sent, if it was nothing for the VALU
  Cause waiting = Cause::no_wave;  // what the wave that can go on soonest waits for
  uint64_t soonest = kNever;
  uint64_t next = kNever;
  auto blocked_until = [&](uint64_t retry, Cause cause) {
    if (retry >= soonest && waiting != Cause::no_wave) return;
    soonest = std::min(soonest, retry);
    waiting = cause;
  };
  for (const auto& owned : simd.slots) {
    Slot& slot = *owned;
    if (slot.ready > t) {
      blocked_until(slot.ready, slot.waiting);
      continue;
    }
    const InstTiming& timing = timing_[static_cast<size_t>(slot.wave->pc - first_inst_)];
    drop_done(slot.vmem, t, [](uint64_t done) { return done; });
    drop_done(slot.lgkm, t, [](const Outstanding& o) { return o.done; });
    bool& taken = used[static_cast<size_t>(timing.issue)];
    if (timing.issue != Issue::internal && taken) {
      blocked_until(t + kVisit, Cause::control);
      continue;
    }
    Cause cause = Cause::control;
    uint64_t retry = t + kVisit;
    if (!can_take(timing, s, slot, t, cause, retry)) {
      blocked_until(retry, cause);
      continue;
    }
    taken = true;
    ++counters_.issued[static_cast<size_t>(timing.issue)];
    if (issued == Cause::no_wave || issued == Cause::control) issued = cause_of(timing.issue);
    issue(slot, s, t, timing);
    next = std::min(next, slot.ready);
  }
  std::erase_if(simd.slots,
                [](const auto& slot) { return slot->wave->state == Wave::State::ended; });
  next = std::min(next, soonest);
  // With every wave at a barrier or none at all, look again in the next turn.
  next = next == kNever ? t + kVisit : std::max(next, t + kVisit);
  if (waiting == Cause::no_wave && !simd.slots.empty()) waiting = simd.slots.front()->waiting;
  book_visit(simd, t, next, issued, waiting);
}

// The clocks until the next visit: the VALU first, then what was sent, then the wait.
void ComputeUnit::book_visit(Simd& simd, uint64_t t, uint64_t next, Cause issued, Cause waiting) {
  uint64_t clocks = (next - t + kVisit - 1) / kVisit * kVisit;
  simd.next = t + clocks;
  const uint64_t busy = std::min(clocks, simd.valu_free > t ? simd.valu_free - t : 0);
  book(Cause::valu, busy);
  clocks -= busy;
  if (busy == 0 && issued != Cause::no_wave) {
    book(issued, kVisit);
    clocks -= kVisit;
  }
  book(waiting, clocks);
  simd.wait_begin = simd.next - clocks;
  simd.wait_cause = waiting;
}

void ComputeUnit::issue(Slot& slot, int simd, uint64_t t, const InstTiming& timing) {
  Wave& wave = *slot.wave;
  const Inst& inst = *wave.pc;
  ++counters_.instructions[static_cast<size_t>(inst.cls)];
  // Addresses are read before the instruction runs: it may overwrite them.
  if (timing.issue == Issue::lds) issue_lds(slot, simd, t, inst, timing);
  if (timing.issue == Issue::vmem) issue_vmem(slot, t, inst, timing);
  if (timing.is_smem) issue_smem(slot, t, inst, timing);
  if (timing.issue == Issue::valu) {
    counters_.lanes_active += static_cast<uint64_t>(std::popcount(wave.exec()));
    simds_[simd].valu_free = t + timing.clocks;
  }
  ++wave.pc;
  inst.run(wave, inst);
  ++wave.executed[static_cast<size_t>(inst.cls)];

  slot.ready = t + std::max<uint64_t>(timing.clocks, kVisit);
  slot.waiting = timing.issue == Issue::valu ? Cause::valu : Cause::control;
  if (timing.issue == Issue::scalar) slot.waiting = Cause::salu;
  if (timing.writes_scalar) slot.scalar_ready = t + card_.valu_to_salu;
  if (timing.issue == Issue::branch && wave.pc != &inst + 1) {
    slot.ready = t + card_.branch_taken;
    slot.waiting = Cause::fetch;
  }
  if (timing.issue == Issue::internal) issue_special(slot, t, inst, timing);
  if (timeline_ != nullptr) note(slot, simd, t, timing);
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

void ComputeUnit::issue_lds(Slot& slot, int simd, uint64_t t, const Inst& inst,
                            const InstTiming& timing) {
  auto& memo = lds_memos_[static_cast<size_t>(&inst - first_inst_)];
  if (!memo) memo = std::make_unique<LdsMemo>();
  const LdsCost cost = lds_cost(*slot.wave, inst, timing, card_, *memo);
  uint64_t& port = lds_port_free_[simd / 2];
  const uint64_t begin = std::max(t, port);
  const uint64_t array_begin = std::max(begin, lds_array_free_);
  lds_array_free_ = array_begin + cost.array;
  port = std::max(begin + cost.port, lds_array_free_);
  counters_.lds_busy_clocks += cost.array;
  counters_.lds_conflict_clocks += cost.conflict;
  lds_conflicts_[static_cast<size_t>(&inst - first_inst_)] += cost.conflict;
  slot.lgkm.push_back({port + card_.lds_latency - kVisit, false});
}

void ComputeUnit::issue_vmem(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing) {
  const LaneLines lines = lane_lines(*slot.wave, inst, timing, card_.line_bytes, addresses_);
  const uint64_t begin = std::max(t, address_free_);
  counters_.vmem_stalled_clocks += begin - t;
  address_free_ = begin + lines.address_clocks;
  double done = static_cast<double>(begin + card_.l1_latency);
  for (uint32_t i = 0; i < lines.count; ++i) {
    const uint64_t line = lines.line[i];
    const auto sent = static_cast<double>(begin);
    if (timing.is_store || timing.is_atomic) {
      const uint32_t bytes = lines.bytes[i];
      done = std::max(done, timing.is_atomic ? memory_.atomic_line(line, bytes, sent)
                                             : memory_.write_line(line, bytes, sent));
      l1_.access(line, /*write=*/false, /*allocate=*/false);
      continue;
    }
    ++counters_.l1_requests;
    if (!timing.bypass_l1 && l1_.access(line, /*write=*/false).hit) {
      ++counters_.l1_hits;
      continue;
    }
    // 64 bytes a clock come back into L1.
    fill_free_ = std::max(fill_free_, memory_.read_line(line, sent)) + 1;
    done = std::max(done, fill_free_);
  }
  const uint64_t last = slot.vmem.empty() ? 0 : slot.vmem.back();
  slot.vmem.push_back(std::max(last, ceil_clock(done)));  // vmcnt counts down in order
}

void ComputeUnit::issue_smem(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing) {
  uint64_t done = t + card_.smem_hit;
  const ScalarLines lines = scalar_lines(*slot.wave, inst, timing, card_.line_bytes, addresses_);
  for (uint64_t line = lines.first; line < lines.end; ++line) {
    if (scalar_cache_.access(line, /*write=*/false).hit) continue;
    done = std::max(done, ceil_clock(memory_.read_line(line, static_cast<double>(t))));
  }
  slot.lgkm.push_back({done, true});
}

void ComputeUnit::wait(Slot& slot, uint64_t t, const WaitCounts& counts) {
  uint64_t ready = t + kVisit;
  Cause cause = Cause::control;
  if (slot.vmem.size() > counts.vm) {
    const uint64_t done = slot.vmem[slot.vmem.size() - counts.vm - 1];
    if (done > ready) ready = done, cause = Cause::vmem_latency;
  }
  if (slot.lgkm.size() > counts.lgkm) {
    uint64_t done = 0;
    bool smem = false;
    // Scalar loads return in any order, so a count above 0 says little about them: all that were
    // sent before the last `lgkm` must be back.
    for (size_t i = 0; i + counts.lgkm < slot.lgkm.size(); ++i) {
      if (slot.lgkm[i].done >= done) done = slot.lgkm[i].done, smem = slot.lgkm[i].smem;
    }
    if (done > ready) ready = done, cause = smem ? Cause::smem_latency : Cause::lds_latency;
  }
  slot.ready = ready;
  slot.waiting = cause;
}

void ComputeUnit::arrive(ResidentGroup& group, uint64_t t) {
  if (group.live == 0 || group.arrived < group.live) return;
  group.arrived = 0;
  for (Simd& simd : simds_) {
    bool released = false;
    for (const auto& slot : simd.slots) {
      if (slot->group != &group || slot->wave->state != Wave::State::at_barrier) continue;
      slot->wave->state = Wave::State::running;
      slot->ready = t + card_.barrier_release;
      if (timeline_ != nullptr && !timeline_->full()) {
        const int index = static_cast<int>(&simd - simds_.data());
        timeline_->add(
            {index, slot->age, slot->barrier_since, slot->ready - slot->barrier_since, "barrier"});
      }
      released = true;
    }
    if (released) cut_wait(simd, t + card_.barrier_release);
  }
}

// A SIMD may have booked a long wait of other waves; its visit moves to where a barrier opens or a
// group starts.
void ComputeUnit::cut_wait(Simd& simd, uint64_t at) {
  const uint64_t earliest = std::max(at, simd.wait_begin);
  if (earliest >= simd.next) return;
  const uint64_t back = (simd.next - earliest) / kVisit * kVisit;
  simd.next -= back;
  counters_.causes[static_cast<size_t>(simd.wait_cause)] -= back;
}

void ComputeUnit::issue_special(Slot& slot, uint64_t t, const Inst& inst,
                                const InstTiming& timing) {
  using Special = InstTiming::Special;
  switch (timing.special) {
    case Special::waitcnt:
      wait(slot, t, inst.wait);
      break;
    case Special::barrier:
      slot.ready = kNever;
      slot.waiting = Cause::barrier;
      slot.barrier_since = t;
      ++slot.group->arrived;
      arrive(*slot.group, t);
      break;
    case Special::end:
      slot.ready = kNever;
      --waves_in_flight_;
      if (--slot.group->live == 0) {
        ended_.push_back(slot.group);
      } else {
        arrive(*slot.group, t);
      }
      break;
    case Special::nop:
      slot.ready = t + kVisit * (static_cast<uint64_t>(inst.immediate) + 1);
      break;
    case Special::sleep:
      slot.ready = t + 64 * static_cast<uint64_t>(inst.immediate);
      break;
    case Special::none:
      break;
  }
}

}  // namespace fasim
