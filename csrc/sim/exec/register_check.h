// Which registers a kernel's instructions may name, checked once per launch instead of per
// execution.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/program.h"

namespace fasim {

class RegisterCheck {
 public:
  RegisterCheck(const Program& program, uint32_t vgprs, uint32_t sgprs);

  // Throws SimFault when an instruction that can be reached from `entry` without an indirect jump
  // names a register beyond the allocation. Instructions seen before cost nothing.
  void require(const Inst& entry);

 private:
  void check(const Inst& inst) const;

  const Program& program_;
  uint32_t vgprs_, sgprs_;
  std::vector<bool> seen_;
  std::vector<uint32_t> pending_;
};

}  // namespace fasim
