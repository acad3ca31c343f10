// Where the clocks of a CU's SIMDs went.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/program.h"
#include "timing/cycle_causes.h"

namespace fasim {

// Why a SIMD spends clocks, and on which instruction of the program; none: no wave is resident.
struct Spending {
  Cause cause = Cause::no_wave;
  const Inst* inst = nullptr;
};

class ClockBook {
 public:
  explicit ClockBook(const Program& program)
      : first_(program.insts.data()), by_instruction_(program.insts.size()) {}

  void add(const Spending& on, uint64_t clocks) {
    causes_[static_cast<size_t>(on.cause)] += clocks;
    if (on.inst) by_instruction_[static_cast<size_t>(on.inst - first_)] += clocks;
  }
  void take_back(const Spending& from, uint64_t clocks) {
    causes_[static_cast<size_t>(from.cause)] -= clocks;
    if (from.inst) by_instruction_[static_cast<size_t>(from.inst - first_)] -= clocks;
  }

  const CauseClocks& causes() const { return causes_; }
  // By index of Program::insts.
  const std::vector<uint64_t>& by_instruction() const { return by_instruction_; }

 private:
  const Inst* first_;
  CauseClocks causes_{};
  std::vector<uint64_t> by_instruction_;
};

}  // namespace fasim
