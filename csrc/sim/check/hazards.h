// The data hazards that gfx906 does not resolve itself: some instructions read a register too early
// when they follow its producer at once. The simulator computes what the programmer meant, and
// reports the distance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "isa/program.h"

namespace fasim {

// What a wave has issued last, as runs of instructions that follow each other in the program. Each
// takes one slot, s_nop N takes N + 1.
class IssueHistory {
 public:
  static constexpr size_t kLongest = 5;  // slots that a hazard can span

  void reset() { runs_.fill(Run()); }
  void push(const Inst* inst) { push_run(inst, 1); }
  // `count` instructions, of which `last` is the last.
  void push_run(const Inst* last, size_t count) { runs_[next_++ % kRuns] = {last, count}; }

  // Calls fn(instruction, distance) for each instruction in the last `slots`; distance 1 is the
  // slot before the next one.
  template <class Fn>
  void visit(size_t slots, Fn fn) const {
    size_t distance = 0;
    for (size_t r = 1; r <= kRuns; ++r) {
      const Run& run = runs_[(next_ - r) % kRuns];
      for (size_t i = 0; i < run.count; ++i) {
        const Inst& inst = *(run.last - i);
        distance += slots_of(inst);
        if (distance > slots) return;
        fn(inst, distance);
      }
    }
  }

  static size_t slots_of(const Inst& inst);

 private:
  struct Run {
    const Inst* last = nullptr;
    size_t count = 0;
  };
  static constexpr size_t kRuns = 8;  // a power of two above kLongest

  std::array<Run, kRuns> runs_{};
  size_t next_ = kRuns;
};

// Throws SimFault when `inst`, about to take the next slot, is too close to a producer.
void check_hazards(const Inst& inst, const IssueHistory& history, const Program& program);

}  // namespace fasim
