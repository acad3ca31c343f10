// Undefined bits in scalar instructions and branches.
#include <string_view>

#include "check/definedness.h"
#include "check/fault.h"
#include "check/text.h"
#include "exec/operands.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

using Rule = RegisterUse::Rule;

struct Bits {
  uint64_t value = 0, undefined = 0;
  Origin origin;

  Bits inverted() const { return {~value, undefined, origin}; }
};

Bits bits_of(const Wave& wave, const Operand& o, const RegisterState& registers) {
  Bits bits{read_scalar64(wave, o), 0, Origin()};
  if (o.where == Where::scc) {
    bits.undefined = registers.undefined[kSccNumber] & 1;
    bits.origin = registers.origin_of_scalar(kSccNumber);
  }
  if (o.where != Where::sgpr) return bits;
  for (uint16_t i = 0; i < o.dwords && i < 2; ++i) {
    const auto number = static_cast<uint16_t>(o.index + i);
    const uint64_t undefined = registers.undefined[number];
    if (undefined && !bits.undefined) bits.origin = registers.origin_of_scalar(number);
    bits.undefined |= undefined << (32 * i);
  }
  return bits;
}

// A bit of a & b is defined where both are, or where one is a defined 0.
uint64_t undefined_in_and(const Bits& a, const Bits& b) {
  return (a.undefined | b.undefined) & (a.value | a.undefined) & (b.value | b.undefined);
}
uint64_t undefined_in_or(const Bits& a, const Bits& b) {
  return undefined_in_and(a.inverted(), b.inverted());
}

uint64_t combine(Rule rule, const Bits& a, const Bits& b, const Bits& scc) {
  const uint64_t anywhere = a.undefined | b.undefined;
  switch (rule) {
    case Rule::bitwise:
      return anywhere;
    case Rule::bit_and:
    case Rule::bit_nand:
      return undefined_in_and(a, b);
    case Rule::bit_or:
    case Rule::bit_nor:
      return undefined_in_or(a, b);
    case Rule::bit_andn2:
      return undefined_in_and(a, b.inverted());
    case Rule::bit_orn2:
      return undefined_in_or(a, b.inverted());
    case Rule::bit_andn1:
      return undefined_in_and(a.inverted(), b);
    case Rule::bit_orn1:
      return undefined_in_or(a.inverted(), b);
    case Rule::select:
      return scc.undefined ? ~0ull : (scc.value ? a.undefined : b.undefined);
    case Rule::any:
      return a.undefined && b.undefined ? ~0ull : 0;
    case Rule::all:
    case Rule::low_first:
    case Rule::high_first:
      break;
  }
  return anywhere || scc.undefined ? ~0ull : 0;
}

[[noreturn]] void refuse(const std::string& what, const Origin& origin) {
  throw SimFault(what + " has no defined value: " + describe(origin, "it"));
}

// VCC decides a branch as soon as one defined bit is set.
void check_branch(const Wave& wave, const Inst& inst, const RegisterState& registers) {
  const std::string_view name = inst.row->name;
  if (inst.row->has(OpcodeRow::kReadsScc) && registers.undefined[kSccNumber] & 1)
    refuse("SCC, the condition of the branch,", registers.origin_of_scalar(kSccNumber));
  if (name.starts_with("s_cbranch_vcc")) {
    const Bits vcc = bits_of(wave, {Where::sgpr, 2, kVcc}, registers);
    if (vcc.undefined && !(vcc.value & ~vcc.undefined))
      refuse("VCC, the condition of the branch,", vcc.origin);
  }
  require_defined_scalar(inst.src[0], "a jump target", registers);
}

void write_scalar(const Operand& dst, uint64_t undefined, const Origin& origin,
                  RegisterState& registers) {
  for (uint16_t i = 0; dst.where == Where::sgpr && i < dst.dwords; ++i) {
    registers.set_undefined(static_cast<uint16_t>(dst.index + i),
                            static_cast<uint32_t>(i < 2 ? undefined >> (32 * i) : 0), origin);
  }
}

bool writes_exec(const Inst& inst) {
  const Operand& dst = inst.dst;
  return inst.row->has(OpcodeRow::kWritesExec) ||
         (dst.where == Where::sgpr && dst.index + dst.dwords > kExec && dst.index <= kExec + 1);
}

}  // namespace

void spread_through_scalars(const Wave& wave, const Inst& inst, const RegisterUse& use,
                            RegisterState& registers) {
  const OpcodeRow& row = *inst.row;
  if (inst.cls == InstClass::branch) check_branch(wave, inst, registers);
  const bool sets_mode = row.name.starts_with("s_setreg") || row.name.starts_with("s_set_gpr_idx");
  if (sets_mode) {
    for (const Operand& o : inst.src) require_defined_scalar(o, "a mode", registers);
  }
  const bool saves_exec = inst.cls == InstClass::salu && row.has(OpcodeRow::kWritesExec);
  const Operand exec{Where::sgpr, 2, kExec};
  const Bits a = bits_of(wave, inst.src[0], registers);
  const Bits b = bits_of(wave, saves_exec ? exec : inst.src[1], registers);
  const Bits scc =
      row.has(OpcodeRow::kReadsScc) ? bits_of(wave, {Where::scc, 1, 0}, registers) : Bits();
  const Origin origin = a.undefined ? a.origin : (b.undefined ? b.origin : scc.origin);
  uint64_t undefined = combine(use.rule, a, b, scc);
  if (inst.dst.dwords == 1) undefined &= 0xffffffff;
  if (undefined && writes_exec(inst)) refuse("the new EXEC", origin);
  if (row.has(OpcodeRow::kWritesScc))
    registers.set_undefined(kSccNumber, undefined ? 1 : 0, origin);
  // s_*_saveexec keeps the old EXEC, which is defined.
  write_scalar(inst.dst, saves_exec ? 0 : undefined, origin, registers);
}

}  // namespace fasim
