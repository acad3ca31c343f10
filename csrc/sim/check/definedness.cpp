#include "check/definedness.h"

#include <bit>

#include "check/fault.h"
#include "check/text.h"
#include "exec/operands.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr int kRowSources = 3;

// Bits of a scalar operand that are undefined.
uint64_t undefined_bits(const Operand& o, const RegisterState& registers) {
  if (o.where == Where::scc) return registers.undefined[kSccNumber] & 1;
  if (o.where == Where::vccz)
    return registers.undefined[kVcc] || registers.undefined[kVcc + 1] ? 1 : 0;
  if (o.where != Where::sgpr) return 0;
  uint64_t bits = registers.undefined[o.index];
  if (o.dwords > 1) bits |= static_cast<uint64_t>(registers.undefined[o.index + 1]) << 32;
  return bits;
}

Origin origin_of(const Operand& o, const RegisterState& registers) {
  if (o.where == Where::vgpr) {
    for (uint16_t i = 0; i < o.dwords; ++i) {
      const auto row = static_cast<uint16_t>(o.index + i);
      if (~registers.lanes(row)) return registers.origin_of_vgpr(row);
    }
    return registers.origin_of_vgpr(o.index);
  }
  if (o.where == Where::scc) return registers.origin_of_scalar(kSccNumber);
  if (o.where == Where::sgpr) {
    const bool high = o.dwords > 1 && !registers.undefined[o.index];
    return registers.origin_of_scalar(static_cast<uint16_t>(o.index + high));
  }
  return registers.origin_of_scalar(kVcc);
}

// Which dwords of a source count, if it has two; bit 0 is the low one.
enum class Dwords : uint8_t { low = 1, high = 2, all = 3 };

Dwords dwords_that_count(RegisterUse::Rule rule, uint16_t result_dword) {
  if (rule == RegisterUse::Rule::low_first && result_dword == 0) return Dwords::low;
  if (rule == RegisterUse::Rule::high_first && result_dword == 1) return Dwords::high;
  return Dwords::all;
}

// Lanes in which a VALU source is defined.
uint64_t defined_lanes(const Wave& wave, const Operand& o, Dwords dwords, const Modifiers* dpp,
                       const RegisterState& registers) {
  auto counts = [&](uint16_t i) { return o.dwords < 2 || static_cast<unsigned>(dwords) >> i & 1; };
  if (o.where != Where::vgpr) {
    const uint64_t bits = undefined_bits(o, registers);
    return (counts(0) && bits & 0xffffffff) || (counts(1) && bits >> 32) ? 0 : ~0ull;
  }
  uint64_t lanes = ~0ull;
  for (uint16_t i = 0; i < o.dwords; ++i) {
    if (counts(i)) lanes &= registers.lanes(static_cast<uint16_t>(o.index + i));
  }
  if (!dpp) return lanes;
  uint64_t moved = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t from = dpp->dpp_lane[lane];
    // A source lane that does not exist or is switched off reads as 0.
    const bool zero = !(dpp->dpp_in_range >> lane & 1) || !(wave.exec() >> from & 1);
    moved |= (zero | (lanes >> from & 1)) << lane;
  }
  return moved;
}

struct Spread {
  uint64_t defined = ~0ull;
  Origin origin;  // of the first undefined source

  void note(uint64_t lanes, const Operand& o, uint64_t exec, const RegisterState& registers) {
    if ((exec & ~lanes) && origin.from == Origin::From::itself) origin = origin_of(o, registers);
  }
};

Spread spread_lanes(const Wave& wave, const Inst& inst, RegisterUse::Rule rule, Dwords dwords,
                    const RegisterState& registers) {
  const Modifiers& mods = wave.modifiers[inst.modifiers];
  const uint64_t exec = wave.exec();
  Spread result;
  uint64_t sources[kRowSources], either = 0;
  for (int i = 0; i < kRowSources; ++i) {
    const Operand& o = inst.src[i];
    sources[i] = defined_lanes(wave, o, dwords, mods.dpp && i == 0 ? &mods : nullptr, registers);
    result.note(sources[i], o, exec, registers);
    result.defined &= sources[i];
    if (o.where == Where::vgpr || o.where == Where::sgpr) either |= sources[i];
  }
  const Operand& mask = inst.src[kMaskSlot];
  const uint64_t mask_defined = ~undefined_bits(mask, registers);
  result.note(mask_defined, mask, exec, registers);
  if (rule == RegisterUse::Rule::any) result.defined = either;
  if (rule == RegisterUse::Rule::select) {
    const uint64_t picks_second = read_scalar64(wave, mask);
    result.defined = (picks_second & sources[1]) | (~picks_second & sources[0]);
  }
  result.defined &= mask_defined;
  return result;
}

}  // namespace

void require_defined_lanes(const Operand& o, uint64_t lanes, const char* use,
                           const RegisterState& registers) {
  if (o.where != Where::vgpr) return require_defined_scalar(o, use, registers);
  for (uint16_t i = 0; i < o.dwords; ++i) {
    const auto row = static_cast<uint16_t>(o.index + i);
    const uint64_t undefined = lanes & ~registers.lanes(row);
    if (!undefined) continue;
    const int lane = std::countr_zero(undefined);
    const std::string name = text("v%u", row);
    SimFault fault(text("%s lane %d is used as %s without a defined value: %s", name.c_str(), lane,
                        use, describe(registers.origin_of_vgpr(row), name).c_str()));
    fault.lane = lane;
    throw fault;
  }
}

void require_defined_scalar(const Operand& o, const char* use, const RegisterState& registers) {
  if (o.where != Where::sgpr) return;
  for (uint16_t i = 0; i < o.dwords; ++i) {
    const auto number = static_cast<uint16_t>(o.index + i);
    if (!registers.undefined[number]) continue;
    const std::string name = scalar_name(number);
    throw SimFault(text("%s is used as %s without a defined value: %s", name.c_str(), use,
                        describe(registers.origin_of_scalar(number), name).c_str()));
  }
}

void spread_through_lanes(const Wave& wave, const Inst& inst, const RegisterUse& use,
                          RegisterState& registers) {
  const uint64_t exec = wave.exec();
  const Spread result = spread_lanes(wave, inst, use.rule, Dwords::all, registers);
  const uint64_t undefined = exec & ~result.defined;
  if (undefined && inst.row->has(OpcodeRow::kWritesExec)) {
    SimFault fault(text("EXEC is written from a comparison without a defined value in lane %d: %s",
                        std::countr_zero(undefined), describe(result.origin, "it").c_str()));
    fault.lane = std::countr_zero(undefined);
    throw fault;
  }
  // Before a source that is the destination, too, changes.
  uint64_t parts[2];
  for (uint16_t i = 0; i < 2; ++i) {
    const Dwords dwords = dwords_that_count(use.rule, i);
    parts[i] = dwords == Dwords::all
                   ? result.defined
                   : spread_lanes(wave, inst, use.rule, dwords, registers).defined;
  }
  const Modifiers& mods = wave.modifiers[inst.modifiers];
  const uint64_t written = mods.dpp ? exec & mods.dpp_write_mask : exec;
  for (uint16_t i = 0; inst.dst.where == Where::vgpr && i < inst.dst.dwords; ++i) {
    const auto row = static_cast<uint16_t>(inst.dst.index + i);
    registers.set_lanes(row, (registers.lanes(row) & ~written) | (parts[i] & written));
    if (undefined) registers.vgpr_origin[row] = result.origin;
  }
  for (uint16_t i = 0; inst.mask_dst.where == Where::sgpr && i < 2; ++i) {
    registers.set_undefined(static_cast<uint16_t>(inst.mask_dst.index + i),
                            static_cast<uint32_t>(undefined >> (32 * i)), result.origin);
  }
}

void spread_through_lane_move(const Wave& wave, const Inst& inst, RegisterState& registers) {
  const std::string_view name = inst.row->name;
  const uint64_t exec = wave.exec();
  if (name == "v_swap_b32") {
    const uint16_t a = inst.dst.index, b = inst.src[0].index;
    const uint64_t in_a = registers.lanes(a), in_b = registers.lanes(b);
    registers.set_lanes(a, (in_a & ~exec) | (in_b & exec));
    registers.set_lanes(b, (in_b & ~exec) | (in_a & exec));
    std::swap(registers.vgpr_origin[a], registers.vgpr_origin[b]);
    return;
  }
  if (inst.row->run == nullptr || inst.dst.where == Where::none) return;  // v_nop
  require_defined_scalar(inst.src[1], "a lane number", registers);
  uint32_t lane = exec ? static_cast<uint32_t>(std::countr_zero(exec)) : 0;
  if (name != "v_readfirstlane_b32") lane = read_scalar32(wave, inst.src[1]) % kLanes;
  const uint64_t bit = 1ull << lane;
  const Operand& source = inst.src[0];
  const bool defined = defined_lanes(wave, source, Dwords::all, nullptr, registers) & bit;
  const Origin origin = defined ? Origin() : origin_of(source, registers);
  if (inst.dst.where == Where::sgpr) {
    registers.set_undefined(inst.dst.index, defined ? 0 : ~0u, origin);
  } else {
    const uint64_t old = registers.lanes(inst.dst.index);
    registers.set_lanes(inst.dst.index, defined ? old | bit : old & ~bit);
    if (!defined) registers.vgpr_origin[inst.dst.index] = origin;
  }
}

}  // namespace fasim
