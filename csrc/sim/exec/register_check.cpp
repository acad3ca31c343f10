#include "exec/register_check.h"

#include "check/fault.h"
#include "check/text.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr uint32_t kLastGeneralSgpr = 101;  // above are VCC, M0, EXEC and their kind

// Control never falls through these.
bool ends_path(const Inst& inst) {
  const std::string_view name = inst.row->name;
  return name == "s_branch" || name == "s_setpc_b64" || name == "s_endpgm" || name == "s_trap" ||
         inst.row->run == nullptr || name == "unknown";
}

}  // namespace

RegisterCheck::RegisterCheck(const Program& program, uint32_t vgprs, uint32_t sgprs)
    : program_(program), vgprs_(vgprs), sgprs_(sgprs), seen_(program.insts.size(), false) {}

void RegisterCheck::check(const Inst& inst) const {
  auto refuse = [&](const char* bank, uint32_t last, uint32_t limit) {
    SimFault fault(
        text("the instruction names %s%u, but the kernel descriptor allocates %s0 to %s%u", bank,
             last, bank, bank, limit - 1));
    fault.pc = program_.address_of(inst);
    fault.disassembly = program_.text_of(inst);
    fault.compose();
    throw fault;
  };
  auto operand = [&](const Operand& o) {
    if (o.where != Where::vgpr && o.where != Where::sgpr) return;
    const uint32_t last = o.index + (o.dwords ? o.dwords - 1u : 0u);
    if (o.where == Where::vgpr && last >= vgprs_) refuse("v", last, vgprs_);
    if (o.where == Where::sgpr && last <= kLastGeneralSgpr && last >= sgprs_)
      refuse("s", last, sgprs_);
  };
  operand(inst.dst);
  operand(inst.mask_dst);
  for (const Operand& o : inst.src) operand(o);
}

void RegisterCheck::require(const Inst& entry) {
  auto visit = [&](uint32_t index) {
    if (index >= seen_.size() || seen_[index]) return;
    seen_[index] = true;
    pending_.push_back(index);
  };
  visit(static_cast<uint32_t>(&entry - program_.insts.data()));
  while (!pending_.empty()) {
    const uint32_t index = pending_.back();
    pending_.pop_back();
    const Inst& inst = program_.insts[index];
    check(inst);
    if (inst.row->has(OpcodeRow::kBranch)) visit(static_cast<uint32_t>(inst.immediate));
    if (!ends_path(inst)) visit(index + 1);
  }
}

}  // namespace fasim
