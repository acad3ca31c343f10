#include "timing/inst_timing.h"

#include "isa/opcodes.h"
#include "timing/valu_rates.h"

namespace fasim {
namespace {

InstTiming::Special special_of(std::string_view name) {
  using Special = InstTiming::Special;
  if (name == "s_waitcnt") return Special::waitcnt;
  if (name == "s_barrier") return Special::barrier;
  if (name == "s_endpgm") return Special::end;
  if (name == "s_nop") return Special::nop;
  if (name == "s_sleep") return Special::sleep;
  return Special::none;
}

void describe_lds(const Inst& inst, InstTiming& t) {
  const std::string_view name = inst.row->name;
  t.issue = Issue::lds;
  t.is_exchange = name.find("permute") != name.npos || name == "ds_swizzle_b32";
  t.is_store = inst.dst.where == Where::none;
  t.is_atomic = !t.is_exchange && !name.starts_with("ds_read") && !name.starts_with("ds_write");
  t.two_accesses = name.starts_with("ds_read2") || name.starts_with("ds_write2");
  const uint32_t dwords = t.is_store ? inst.src[1].dwords : inst.dst.dwords;
  t.bytes = static_cast<uint8_t>(4 * dwords / (t.two_accesses && !t.is_store ? 2 : 1));
  t.unit = static_cast<uint16_t>(t.two_accesses ? t.bytes : 1);
  if (name.find("st64") != name.npos) t.unit *= 64;
}

void describe_vmem(const Inst& inst, InstTiming& t) {
  const std::string_view name = inst.row->name;
  t.issue = Issue::vmem;
  t.is_buffer = name.starts_with("buffer_");
  t.is_atomic = name.find("_atomic") != name.npos;
  t.is_store = name.find("_store") != name.npos;
  t.bypass_l1 = inst.memory.glc;
  const Operand data = t.is_store || t.is_atomic ? inst.src[t.is_buffer ? 0 : 1] : inst.dst;
  t.bytes = static_cast<uint8_t>(4 * data.dwords);
}

InstTiming describe(const Inst& inst, const CardTiming& card) {
  InstTiming t;
  if (!inst.row) return t;
  switch (inst.cls) {
    case InstClass::valu:
      t.issue = Issue::valu;
      t.clocks = static_cast<uint8_t>(valu_clocks(*inst.row, card));
      t.writes_scalar = inst.mask_dst.where == Where::sgpr || inst.dst.where == Where::sgpr;
      break;
    case InstClass::salu:
      t.issue = Issue::scalar;
      t.clocks = inst.row->name.find("saveexec") != std::string_view::npos ? 8 : 4;
      break;
    case InstClass::smem:
      t.issue = Issue::scalar;
      t.is_smem = true;
      // Up to x4 the request takes 4 clocks; x8 takes 8 and x16 takes 16.
      t.clocks = static_cast<uint8_t>(inst.dst.dwords <= 4 ? 4 : inst.dst.dwords);
      t.bytes = static_cast<uint8_t>(4 * inst.dst.dwords);
      break;
    case InstClass::lds:
      describe_lds(inst, t);
      break;
    case InstClass::vmem:
      describe_vmem(inst, t);
      break;
    case InstClass::branch:
      t.issue = Issue::branch;
      break;
    case InstClass::other:
      t.special = special_of(inst.row->name);
      break;
  }
  return t;
}

}  // namespace

std::vector<InstTiming> time_instructions(const Program& program, const CardTiming& card) {
  std::vector<InstTiming> timing;
  timing.reserve(program.insts.size());
  for (const Inst& inst : program.insts) timing.push_back(describe(inst, card));
  return timing;
}

}  // namespace fasim
