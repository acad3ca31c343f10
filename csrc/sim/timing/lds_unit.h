// The LDS of one CU in time: a port for each pair of SIMDs, and one array of banks behind both.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/wave.h"
#include "isa/program.h"
#include "timing/card_timing.h"
#include "timing/inst_timing.h"
#include "timing/lane_lines.h"

namespace fasim {

class LdsUnit {
 public:
  LdsUnit(const CardTiming& card, const Program& program);

  // The clock from which the port of `simd` takes an instruction.
  uint64_t takes_from(int simd) const;
  // Sends the wave's next instruction at `t`, before it runs; returns when its data is back.
  uint64_t send(Wave& wave, const InstTiming& timing, int simd, uint64_t t);

  uint64_t busy_clocks() const { return busy_clocks_; }  // of the bank array
  uint64_t conflict_clocks() const;
  // Clocks that bank conflicts cost, by index of Program::insts.
  const std::vector<uint64_t>& conflicts() const { return conflicts_; }

 private:
  const CardTiming& card_;
  const Inst* first_inst_;
  std::array<uint64_t, 2> port_free_{};
  uint64_t array_free_ = 0;
  uint64_t busy_clocks_ = 0;
  std::vector<uint64_t> conflicts_;
  std::vector<std::unique_ptr<LdsMemo>> memos_;  // of each instruction that was sent
};

}  // namespace fasim
