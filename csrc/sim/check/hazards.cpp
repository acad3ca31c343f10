#include "check/hazards.h"

#include <cinttypes>
#include <string>
#include <string_view>

#include "check/fault.h"
#include "check/register_state.h"
#include "check/text.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr uint16_t kVccNumber = 106;

bool is_valu(const Inst& inst) { return inst.cls == InstClass::valu; }
bool overlap(const Operand& a, const Operand& b) {
  return a.where == b.where && a.index < b.index + b.dwords && b.index < a.index + a.dwords;
}
bool writes_vgpr(const Inst& inst, const Operand& o) {
  if (!is_valu(inst) || o.where != Where::vgpr) return false;
  return overlap(inst.dst, o) || (inst.row->name == "v_swap_b32" && overlap(inst.src[0], o));
}
bool writes_scalar(const Inst& inst, const Operand& o) {
  if (!is_valu(inst) || o.where != Where::sgpr) return false;
  return overlap(inst.dst, o) || overlap(inst.mask_dst, o);
}
bool writes_exec(const Inst& inst) {
  return is_valu(inst) && inst.row->has(OpcodeRow::kWritesExec);
}

class Consumer {
 public:
  Consumer(const Inst& inst, const IssueHistory& history, const Program& program)
      : inst_(inst), history_(history), program_(program) {}

  // Refuses when one of the `slots` instructions before this one does `produces`.
  // `what` makes the text only then.
  template <class Text, class Fn>
  void expect(size_t slots, Text what, Fn produces) const {
    history_.visit(slots, [&](const Inst& producer, size_t distance) {
      if (produces(producer)) refuse(slots, distance, what(), producer);
    });
  }
  const Inst& inst() const { return inst_; }

 private:
  [[noreturn]] void refuse(size_t slots, size_t distance, const std::string& what,
                           const Inst& producer) const {
    throw SimFault(text("hazard: %s: %s (pc %#" PRIx64
                        ") is %zu slots before; expected %zu in between, as s_nop %zu gives",
                        what.c_str(), program_.text_of(producer).c_str(),
                        program_.address_of(producer), distance - 1, slots, slots - 1));
  }

  const Inst& inst_;
  const IssueHistory& history_;
  const Program& program_;
};

std::string name_of(const Operand& o) {
  if (o.where == Where::vgpr) return text("v%u", o.index);
  const std::string first = scalar_name(o.index);
  const bool numbered = first.front() == 's';
  return numbered && o.dwords > 1 ? text("s[%u:%u]", o.index, o.index + o.dwords - 1) : first;
}

void check_dpp(const Consumer& c) {
  const Operand& source = c.inst().src[0];
  c.expect(
      2, [&] { return "DPP reads " + name_of(source) + ", written by the VALU"; },
      [&](const Inst& p) { return writes_vgpr(p, source); });
  c.expect(5, [] { return "DPP runs under EXEC, written by the VALU"; }, writes_exec);
}

void check_vmem(const Consumer& c) {
  for (const Operand& o : c.inst().src) {
    if (o.where != Where::sgpr) continue;
    c.expect(
        5, [&] { return "VMEM reads " + name_of(o) + ", written by the VALU"; },
        [&](const Inst& p) { return writes_scalar(p, o); });
  }
}

void check_wide_store(const Consumer& c) {
  c.expect(
      1, [] { return "the VALU overwrites data that a store of more than 64 bits still reads"; },
      [&](const Inst& p) {
        if (p.cls != InstClass::vmem) return false;
        const bool buffer = p.row->name.starts_with("buffer_");
        if (buffer && p.src[3].where == Where::sgpr) return false;
        const Operand& data = p.src[buffer ? 0 : 1];
        return data.where == Where::vgpr && data.dwords > 2 && writes_vgpr(c.inst(), data);
      });
}

void check_valu(const Consumer& c) {
  check_wide_store(c);
  const std::string_view name = c.inst().row->name;
  if (name == "v_readlane_b32" || name == "v_writelane_b32") {
    const Operand& lane = c.inst().src[1];
    c.expect(
        4, [&] { return "the lane number is in " + name_of(lane) + ", written by the VALU"; },
        [&](const Inst& p) { return writes_scalar(p, lane); });
  }
  const Operand vcc{Where::sgpr, 2, kVccNumber};
  auto writes_vcc = [&](const Inst& p) { return writes_scalar(p, vcc); };
  if (name.starts_with("v_div_fmas"))
    c.expect(4, [] { return "v_div_fmas reads VCC, written by the VALU"; }, writes_vcc);
  for (const Operand& o : c.inst().src) {
    if (o.where == Where::vccz)
      c.expect(
          5, [] { return "vccz is read as a value, and VCC was written by the VALU"; }, writes_vcc);
    if (o.where == Where::execz)
      c.expect(
          5, [] { return "execz is read as a value, and EXEC was written by the VALU"; },
          writes_exec);
  }
}

// The register id is in bits 5:0 of simm16.
void check_hardware_register(const Consumer& c) {
  const auto id = static_cast<unsigned>(c.inst().immediate & 0x3f);
  c.expect(
      2, [&] { return text("hardware register %u is accessed, written by s_setreg", id); },
      [&](const Inst& p) {
        return p.row->name.starts_with("s_setreg") && (p.immediate & 0x3f) == id;
      });
}

}  // namespace

size_t IssueHistory::slots_of(const Inst& inst) {
  return inst.row->name == "s_nop" ? 1 + static_cast<size_t>(inst.immediate & 0xf) : 1;
}

void check_hazards(const Inst& inst, const IssueHistory& history, const Program& program) {
  const Consumer consumer(inst, history, program);
  if (inst.cls == InstClass::vmem) return check_vmem(consumer);
  if (!is_valu(inst)) return check_hardware_register(consumer);
  if (program.modifiers[inst.modifiers].dpp) check_dpp(consumer);
  check_valu(consumer);
}

}  // namespace fasim
