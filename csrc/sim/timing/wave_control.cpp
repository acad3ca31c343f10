// Instructions that are handled in a wave's buffer: waits, barriers, the end of a wave.
#include <algorithm>

#include "timing/compute_unit.h"

namespace fasim {

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
  slot.waiting.cause = cause;
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
  book_.take_back(simd.wait, back);
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
      slot.waiting.cause = Cause::barrier;
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
