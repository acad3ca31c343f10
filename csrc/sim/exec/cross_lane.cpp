// Opcodes that move data between a VGPR's lanes and scalar registers; they ignore most modifiers.
#include <algorithm>
#include <bit>

#include "exec/operands.h"
#include "exec/rows.h"

namespace fasim {
namespace {

uint32_t read_lane(Wave& wave, Operand source, uint32_t lane) {
  return source.where == Where::vgpr ? wave.row(source.index)[lane] : read_scalar32(wave, source);
}

// The first active lane, or lane 0 when EXEC is 0.
void run_readfirstlane(Wave& wave, const Inst& inst) {
  const uint64_t exec = wave.exec();
  const uint32_t lane = exec ? static_cast<uint32_t>(std::countr_zero(exec)) : 0;
  wave.sgpr[inst.dst.index] = read_lane(wave, inst.src[0], lane);
}
// readlane and writelane work on lanes that EXEC switches off, too.
void run_readlane(Wave& wave, const Inst& inst) {
  wave.sgpr[inst.dst.index] =
      read_lane(wave, inst.src[0], read_scalar32(wave, inst.src[1]) % kLanes);
}
void run_writelane(Wave& wave, const Inst& inst) {
  wave.row(inst.dst.index)[read_scalar32(wave, inst.src[1]) % kLanes] =
      read_scalar32(wave, inst.src[0]);
}

void run_swap(Wave& wave, const Inst& inst) {
  uint32_t *a = wave.row(inst.dst.index), *b = wave.row(inst.src[0].index);
  const uint64_t exec = wave.exec();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (exec >> lane & 1) std::swap(a[lane], b[lane]);
  }
}

constexpr OpcodeRow kRows[] = {
    {.name = "v_readfirstlane_b32",
     .run = &run_readfirstlane,
     .cls = InstClass::valu,
     .dst = Kind::b32,
     .src = {Kind::b32}},
    {.name = "v_readlane_b32",
     .run = &run_readlane,
     .cls = InstClass::valu,
     .dst = Kind::b32,
     .src = {Kind::b32, Kind::b32}},
    {.name = "v_writelane_b32",
     .run = &run_writelane,
     .cls = InstClass::valu,
     .dst = Kind::b32,
     .src = {Kind::b32, Kind::b32}},
    {.name = "v_swap_b32",
     .run = &run_swap,
     .cls = InstClass::valu,
     .dst = Kind::b32,
     .src = {Kind::b32}},
};

}  // namespace

Rows cross_lane_rows() { return kRows; }

}  // namespace fasim
