// One compute unit: four SIMDs that issue to the LDS, vector and scalar memory they share.
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
#include "timing/card_timing.h"
#include "timing/clock_book.h"
#include "timing/inst_timing.h"
#include "timing/lds_unit.h"
#include "timing/timeline.h"
#include "timing/vector_memory.h"

namespace fasim {

inline constexpr int kSimds = 4;
inline constexpr uint64_t kVisit = 4;  // clocks between two visits of a SIMD

struct CuCounters {
  CauseClocks causes{};  // of all four SIMDs
  std::array<uint64_t, kInstClasses> instructions{};
  uint64_t lanes_active = 0;  // of VALU instructions
  uint64_t lds_conflict_clocks = 0;
  uint64_t lds_busy_clocks = 0;           // of the bank array
  uint64_t l1_requests = 0, l1_hits = 0;  // lines
  uint64_t vmem_stalled_clocks = 0;       // waiting for address units

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
  ComputeUnit(const CardTiming& card, const Program& program, const std::vector<InstTiming>& timing,
              MemorySystem& memory, DeviceAddresses& addresses);

  // The group's waves may issue from `now` on.
  void start(ResidentGroup* group, uint64_t now);
  // Runs until `until`, or until a group has ended: it is then returned, else null.
  ResidentGroup* run(uint64_t until);
  bool idle() const { return waves_in_flight_ == 0 && ended_.empty(); }
  uint64_t now() const { return now_; }
  // Books clocks in which the CU has nothing to do.
  void idle_until(uint64_t until);

  CuCounters counters() const;
  uint64_t instructions() const;
  // By index of Program::insts: SIMD clocks, and clocks that bank conflicts cost.
  const std::vector<uint64_t>& clocks() const { return book_.by_instruction(); }
  const std::vector<uint64_t>& lds_conflicts() const { return lds_.conflicts(); }

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
    uint64_t ready;             // next clock at which the wave may issue
    Spending waiting;           // until then
    uint64_t scalar_ready = 0;  // SGPRs written by the VALU are there
    uint64_t age;
    uint64_t barrier_since = 0;
    std::deque<uint64_t> vmem;     // completion, in order
    std::deque<Outstanding> lgkm;  // LDS in order, scalar loads in any
  };
  struct Simd {
    std::vector<std::unique_ptr<Slot>> slots;  // oldest first
    uint64_t valu_free = 0;
    const Inst* in_valu = nullptr;  // until then
    uint64_t next = 0;              // next visit
    // The clocks before `next` that were booked as a wait; a barrier or a new group can cut it
    // short.
    uint64_t wait_begin = 0;
    Spending wait;
  };
  static constexpr uint64_t kNever = ~0ull;

  void visit(int simd, uint64_t t);
  // What keeps the wave's next instruction from being sent, and until when.
  struct Obstacle {
    Cause cause = Cause::control;
    uint64_t until = 0;
  };
  Obstacle obstacle(const InstTiming& timing, int simd, const Slot& slot) const;
  void issue(Slot& slot, int simd, uint64_t t, const InstTiming& timing);
  void send(Slot& slot, int simd, uint64_t t, const InstTiming& timing);
  void issue_special(Slot& slot, uint64_t t, const Inst& inst, const InstTiming& timing);
  void wait(Slot& slot, uint64_t t, const WaitCounts& counts);
  void arrive(ResidentGroup& group, uint64_t t);
  void cut_wait(Simd& simd, uint64_t at);
  void note(const Slot& slot, int simd, uint64_t t, const InstTiming& timing);
  void book_visit(Simd& simd, uint64_t t, uint64_t next, const Spending& issued,
                  const Spending& waiting);

  const CardTiming& card_;
  const std::vector<InstTiming>& timing_;
  const Inst* first_inst_;
  std::array<Simd, kSimds> simds_;
  LdsUnit lds_;
  VectorMemory vector_memory_;
  ScalarMemory scalar_memory_;
  ClockBook book_;
  Timeline* timeline_ = nullptr;
  std::vector<ResidentGroup*> ended_;  // not yet returned; one visit can end several
  uint64_t now_ = 0;
  uint64_t next_age_ = 0;
  uint32_t waves_in_flight_ = 0;
  std::array<uint64_t, kInstClasses> instructions_{};
  uint64_t lanes_active_ = 0;
};

}  // namespace fasim
