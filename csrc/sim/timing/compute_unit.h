// One compute unit: four SIMDs that issue, and the LDS, vector and scalar memory they share.
//
// Issue follows AMD's description of GCN ("Vega 7nm" ISA; ROCm compute profiler, "Pipeline
// descriptions"): each clock one SIMD is looked at, so each SIMD every 4 clocks; in its turn it
// sends at most one instruction of each class, each from a different wave, oldest first.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "exec/wave.h"
#include "timing/cache.h"
#include "timing/card_timing.h"
#include "timing/cycle_causes.h"
#include "timing/device_addresses.h"
#include "timing/inst_timing.h"
#include "timing/lane_lines.h"
#include "timing/memory_system.h"
#include "timing/timeline.h"

namespace fasim {

inline constexpr int kSimds = 4;

struct CuCounters {
  CauseClocks causes{};  // of all four SIMDs
  std::array<uint64_t, kInstClasses> instructions{};
  uint64_t lanes_active = 0;  // of VALU instructions
  uint64_t lds_conflict_clocks = 0;
  uint64_t lds_busy_clocks = 0;           // of the bank array
  uint64_t l1_requests = 0, l1_hits = 0;  // lines
  uint64_t vmem_stalled_clocks = 0;       // waiting for address units
  std::array<uint64_t, kIssueClasses> issued{};

  CuCounters& operator+=(const CuCounters& other);
};

// A workgroup whose waves are on a CU. The owner keeps registers and LDS.
struct ResidentGroup {
  std::vector<Wave>* waves = nullptr;
  void* owner = nullptr;
  uint32_t live = 0;     // waves that have not ended
  uint32_t arrived = 0;  // at the barrier
};

class ComputeUnit {
 public:
  ComputeUnit(const CardTiming& card, const std::vector<InstTiming>& timing, const Inst* first_inst,
              MemorySystem& memory, DeviceAddresses& addresses);

  // The group's waves may issue from `now` on.
  void start(ResidentGroup* group, uint64_t now);
  // Runs until `until`, or until a group has ended: it is then returned, else null.
  ResidentGroup* run(uint64_t until);
  bool idle() const { return waves_in_flight_ == 0 && ended_.empty(); }
  uint64_t now() const { return now_; }
  // Books clocks in which the CU has nothing to do.
  void idle_until(uint64_t until);

  const CuCounters& counters() const { return counters_; }
  // Clocks that bank conflicts cost, by instruction of the program.
  const std::vector<uint64_t>& lds_conflicts() const { return lds_conflicts_; }

  // Notes what its waves do from now on, until the timeline is full.
  void record(Timeline* timeline) { timeline_ = timeline; }

 private:
  struct Outstanding {
    uint64_t done;
    bool smem;
  };
  struct Slot {
    Wave* wave;
    ResidentGroup* group;
    uint64_t ready;  // next clock at which the wave may issue
    Cause waiting = Cause::control;
    uint64_t scalar_ready = 0;  // SGPRs written by the VALU are there
    uint64_t age;
    uint64_t barrier_since = 0;
    std::deque<uint64_t> vmem;     // completion, in order
    std::deque<Outstanding> lgkm;  // LDS in order, scalar loads in any
  };
  struct Simd {
    std::vector<std::unique_ptr<Slot>> slots;  // oldest first
    uint64_t valu_free = 0;
    uint64_t next = 0;  // next visit
    // The clocks before `next` that were booked as a wait; a barrier or a new group can cut it
    // short.
    uint64_t wait_begin = 0;
    Cause wait_cause = Cause::no_wave;
  };
  static constexpr uint64_t kNever = ~0ull;

  void visit(int simd, uint64_t t);
  bool can_take(const InstTiming& timing, int simd, const Slot& slot, uint64_t t, Cause& blocked,
                uint64_t& retry) const;
  void issue(Slot& slot, int simd, uint64_t t, const InstTiming& timing);
  void issue_lds(Slot& slot, int simd, uint64_t t, const Inst& inst, const InstTiming& timing);
  void issue_vmem(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing);
  void issue_smem(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing);
  void issue_special(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing);
  void wait(Slot& slot, uint64_t t, const WaitCounts& counts);
  void arrive(ResidentGroup& group, uint64_t t);
  void cut_wait(Simd& simd, uint64_t at);
  void note(const Slot& slot, int simd, uint64_t t, const InstTiming& timing);
  void book_visit(Simd& simd, uint64_t t, uint64_t next, Cause issued, Cause waiting);
  void book(Cause cause, uint64_t clocks) {
    counters_.causes[static_cast<size_t>(cause)] += clocks;
  }

  const CardTiming& card_;
  const std::vector<InstTiming>& timing_;
  const Inst* first_inst_;
  MemorySystem& memory_;
  DeviceAddresses& addresses_;
  std::array<Simd, kSimds> simds_;
  std::array<uint64_t, 2> lds_port_free_{};
  uint64_t lds_array_free_ = 0;
  uint64_t address_free_ = 0;
  double fill_free_ = 0;
  std::vector<std::unique_ptr<LdsMemo>> lds_memos_;  // of each instruction that was sent to LDS
  Cache l1_;
  Cache scalar_cache_;
  Timeline* timeline_ = nullptr;
  std::vector<ResidentGroup*> ended_;  // not yet returned; one visit can end several
  uint64_t now_ = 0;
  uint64_t next_age_ = 0;
  uint32_t waves_in_flight_ = 0;
  CuCounters counters_;
  std::vector<uint64_t> lds_conflicts_;
};

}  // namespace fasim
