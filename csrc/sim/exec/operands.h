// Everything around an opcode's lane arithmetic: operand fetch, modifiers, write-back.
#pragma once

#include <cstdint>

#include "exec/wave.h"
#include "isa/inst.h"

namespace fasim {

// Rows of 64 dwords; a 64-bit operand's high dwords are the next row.
struct LaneArgs {
  uint32_t* dst = nullptr;
  const uint32_t* src[3] = {};
  uint64_t mask_in = 0;
  uint64_t mask_out = 0;
  bool saturate = false;  // clamp, for the integer opcodes that define it
};

// Where a lane mask source sits in Inst::src; rows fill the slots before it.
inline constexpr size_t kMaskSlot = 3;

// Runs any VALU opcode that has a lane function.
void run_valu(Wave& wave, const Inst& inst);

// The value of a scalar, constant or special operand.
inline uint64_t read_scalar64(const Wave& wave, Operand o) {
  switch (o.where) {
    case Where::sgpr:
      return o.dwords > 1 ? wave.read64(o.index) : wave.sgpr[o.index];
    case Where::constant: {
      const ConstantRow& row = wave.constants[o.index];
      return row.lanes[0] | static_cast<uint64_t>(row.lanes[kLanes]) << 32;
    }
    case Where::scc:
      return wave.scc;
    case Where::vccz:
      return wave.vcc() == 0;
    case Where::execz:
      return wave.exec() == 0;
    case Where::none:
    case Where::vgpr:
      break;
  }
  return 0;
}
inline uint32_t read_scalar32(const Wave& wave, Operand o) {
  if (o.where == Where::sgpr) return wave.sgpr[o.index];
  return static_cast<uint32_t>(read_scalar64(wave, o));
}

}  // namespace fasim
