#include "exec/flow.h"

#include <cinttypes>

#include "check/fault.h"
#include "check/text.h"
#include "exec/operands.h"
#include "exec/register_check.h"
#include "exec/rows.h"

namespace fasim {

void run_unknown(Wave& wave, const Inst& inst) {
  throw SimFault("the simulator has no semantics for " + wave.program->text_of(inst));
}

namespace {

const Inst* first_inst(const Wave& wave) { return wave.program->insts.data(); }

template <class Taken>
void run_branch(Wave& wave, const Inst& inst) {
  if (Taken{}(wave)) wave.pc = first_inst(wave) + inst.immediate;
}
template <class Taken>
constexpr OpcodeRow branch(std::string_view name, Taken, uint16_t flags = 0) {
  return {.name = name,
          .run = &run_branch<Taken>,
          .cls = InstClass::branch,
          .flags = static_cast<uint16_t>(OpcodeRow::kBranch | flags),
          .src = {Kind::simm16}};
}

uint64_t return_address(const Wave& wave) { return wave.program->address_of(*wave.pc); }

void jump(Wave& wave, uint64_t target) {
  const Inst* to = wave.program->find(target);
  if (!to) {
    throw SimFault(
        text("jump to %#" PRIx64 ", where no instruction of this code object starts", target));
  }
  wave.registers->require(*to);
  wave.pc = to;
}
void run_getpc(Wave& wave, const Inst& inst) { wave.write64(inst.dst.index, return_address(wave)); }
void run_setpc(Wave& wave, const Inst& inst) { jump(wave, read_scalar64(wave, inst.src[0])); }
void run_swappc(Wave& wave, const Inst& inst) {
  const uint64_t target = read_scalar64(wave, inst.src[0]), back = return_address(wave);
  jump(wave, target);
  wave.write64(inst.dst.index, back);
}
void run_call(Wave& wave, const Inst& inst) {
  wave.write64(inst.dst.index, return_address(wave));
  wave.pc = first_inst(wave) + inst.immediate;
}

void run_endpgm(Wave& wave, const Inst&) { wave.state = Wave::State::ended; }
void run_barrier(Wave& wave, const Inst&) { wave.state = Wave::State::at_barrier; }
// Waits, priorities and cache maintenance have no functional effect: memory is always current.
void run_nothing(Wave&, const Inst&) {}
void run_trap(Wave&, const Inst& inst) {
  throw SimFault(text("s_trap %d: the program called __builtin_trap, abort or a failed assert",
                      static_cast<int>(inst.immediate)));
}

// simm16 of s_getreg and s_setreg: register id, first bit, size - 1.
struct HardwareField {
  explicit HardwareField(int64_t simm16)
      : id(static_cast<uint32_t>(simm16) & 0x3f),
        offset(static_cast<uint32_t>(simm16) >> 6 & 0x1f),
        mask(static_cast<uint32_t>((1ull << ((static_cast<uint32_t>(simm16) >> 11 & 0x1f) + 1)) -
                                   1)) {}
  uint32_t id, offset, mask;
};
constexpr uint32_t kModeId = 1, kTrapStatusId = 3, kHardwareId = 4, kLdsAllocationId = 6,
                   kMemoryBases = 15;

void run_getreg(Wave& wave, const Inst& inst) {
  const HardwareField field(inst.immediate);
  uint32_t value = 0;
  switch (field.id) {
    case kModeId:
      value = wave.mode.bits | wave.dx10_clamp << 8 | wave.ieee << 9 | wave.indexed_vgprs << 27;
      break;
    case kTrapStatusId:
    case kHardwareId:
      break;  // no exceptions; wave slot 0 of SIMD 0 of CU 0
    case kLdsAllocationId:
      value = (wave.lds_bytes + 511) / 512 << 12;
      break;
    case kMemoryBases:
      value = kPrivateAperture >> 16 | kSharedAperture >> 16 << 16;
      break;
    default:
      throw SimFault(text("s_getreg of hardware register %u is not simulated", field.id));
  }
  wave.sgpr[inst.dst.index] = value >> field.offset & field.mask;
}

constexpr uint32_t kUnsupportedMode = 1u << 23 | 1u << 28;

void set_mode(Wave& wave, const Inst& inst, uint32_t value) {
  const HardwareField field(inst.immediate);
  if (field.id != kModeId) {
    throw SimFault(
        text("s_setreg of hardware register %u is not simulated; only MODE (1) is", field.id));
  }
  const uint32_t mask = field.mask << field.offset, bits = value << field.offset & mask;
  wave.mode.bits = ((wave.mode.bits & ~mask) | bits) & 0xff;
  if (mask & 0x100) wave.dx10_clamp = bits & 0x100;
  if (mask & 0x200) wave.ieee = bits & 0x200;
  if (mask & 1u << 27) wave.indexed_vgprs = bits & 1u << 27;
  wave.mode_changed();
  if (!wave.mode.round_nearest_even()) {
    throw SimFault(
        text("s_setreg asks for rounding mode %#x; only round to nearest even (0) is simulated",
             wave.mode.bits & 0xf));
  }
  if (bits & kUnsupportedMode) {
    throw SimFault(
        text("s_setreg sets MODE bits %#x: f16 overflow clamping (bit 23) and vector skip (bit 28) "
             "are not simulated",
             bits & kUnsupportedMode));
  }
}
void run_setreg(Wave& wave, const Inst& inst) {
  set_mode(wave, inst, read_scalar32(wave, inst.src[1]));
}

constexpr OpcodeRow sopp(std::string_view name, RunFunction run) {
  return {.name = name, .run = run, .cls = InstClass::other, .src = {Kind::simm16}};
}
constexpr OpcodeRow bare(std::string_view name, RunFunction run) {
  return {.name = name, .run = run, .cls = InstClass::other};
}

constexpr OpcodeRow kRows[] = {
    branch("s_branch", [](const Wave&) { return true; }),
    branch(
        "s_cbranch_scc0", [](const Wave& w) { return !w.scc; }, OpcodeRow::kReadsScc),
    branch(
        "s_cbranch_scc1", [](const Wave& w) { return w.scc; }, OpcodeRow::kReadsScc),
    branch("s_cbranch_vccz", [](const Wave& w) { return w.vcc() == 0; }),
    branch("s_cbranch_vccnz", [](const Wave& w) { return w.vcc() != 0; }),
    branch("s_cbranch_execz", [](const Wave& w) { return w.exec() == 0; }),
    branch("s_cbranch_execnz", [](const Wave& w) { return w.exec() != 0; }),
    {.name = "s_getpc_b64", .run = &run_getpc, .cls = InstClass::salu, .dst = Kind::b64},
    {.name = "s_setpc_b64", .run = &run_setpc, .cls = InstClass::branch, .src = {Kind::b64}},
    {.name = "s_swappc_b64",
     .run = &run_swappc,
     .cls = InstClass::branch,
     .dst = Kind::b64,
     .src = {Kind::b64}},
    {.name = "s_call_b64",
     .run = &run_call,
     .cls = InstClass::branch,
     .flags = OpcodeRow::kBranch,
     .dst = Kind::b64,
     .src = {Kind::simm16}},
    bare("s_endpgm", &run_endpgm),
    bare("s_barrier", &run_barrier),
    sopp("s_waitcnt", &run_nothing),
    sopp("s_nop", &run_nothing),
    sopp("s_sleep", &run_nothing),
    sopp("s_setprio", &run_nothing),
    sopp("s_trap", &run_trap),
    bare("s_icache_inv", &run_nothing),
    bare("s_dcache_inv", &run_nothing),
    bare("s_dcache_wb", &run_nothing),
    bare("s_dcache_inv_vol", &run_nothing),
    bare("s_dcache_wb_vol", &run_nothing),
    bare("buffer_wbinvl1", &run_nothing),
    bare("buffer_wbinvl1_vol", &run_nothing),
    bare("v_nop", &run_nothing),
    bare("s_wakeup", &run_nothing),
    {.name = "s_getreg_b32",
     .run = &run_getreg,
     .cls = InstClass::salu,
     .dst = Kind::b32,
     .src = {Kind::simm16}},
    {.name = "s_setreg_b32",
     .run = &run_setreg,
     .cls = InstClass::salu,
     .src = {Kind::simm16, Kind::b32}},
    {.name = "s_setreg_imm32_b32",
     .run = &run_setreg,
     .cls = InstClass::salu,
     .src = {Kind::simm16, Kind::b32}},
};

}  // namespace

Rows flow_rows() { return kRows; }

}  // namespace fasim
