#include "isa/register_use.h"

#include <algorithm>
#include <string_view>

#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr uint16_t kVccNumber = 106, kM0Number = 124, kExecNumber = 126;

struct NamedRule {
  std::string_view name;
  RegisterUse::Rule rule;
};
constexpr NamedRule kRules[] = {
    {"v_cndmask_b32", RegisterUse::Rule::select},
    {"v_mad_u64_u32", RegisterUse::Rule::low_first},
    {"v_mad_i64_i32", RegisterUse::Rule::low_first},
    {"v_lshlrev_b64", RegisterUse::Rule::low_first},
    {"v_lshrrev_b64", RegisterUse::Rule::high_first},
    {"v_ashrrev_i64", RegisterUse::Rule::high_first},
    {"v_or_b32", RegisterUse::Rule::any},
    {"v_or3_b32", RegisterUse::Rule::any},
    {"v_and_or_b32", RegisterUse::Rule::any},
    {"v_lshl_or_b32", RegisterUse::Rule::any},
    {"v_bfi_b32", RegisterUse::Rule::any},
    {"v_perm_b32", RegisterUse::Rule::any},
    {"v_alignbit_b32", RegisterUse::Rule::any},
    {"v_alignbyte_b32", RegisterUse::Rule::any},
    {"v_pack_b32_f16", RegisterUse::Rule::any},
    {"v_cvt_pkrtz_f16_f32", RegisterUse::Rule::any},
    {"s_pack_ll_b32_b16", RegisterUse::Rule::any},
    {"s_pack_lh_b32_b16", RegisterUse::Rule::any},
    {"s_pack_hh_b32_b16", RegisterUse::Rule::any},
    {"s_cselect_b32", RegisterUse::Rule::select},
    {"s_cselect_b64", RegisterUse::Rule::select},
    {"s_cmov_b32", RegisterUse::Rule::select},
    {"s_cmov_b64", RegisterUse::Rule::select},
    {"s_mov_b32", RegisterUse::Rule::bitwise},
    {"s_mov_b64", RegisterUse::Rule::bitwise},
    {"s_not_b32", RegisterUse::Rule::bitwise},
    {"s_not_b64", RegisterUse::Rule::bitwise},
    {"s_xor_b32", RegisterUse::Rule::bitwise},
    {"s_xor_b64", RegisterUse::Rule::bitwise},
    {"s_xnor_b32", RegisterUse::Rule::bitwise},
    {"s_xnor_b64", RegisterUse::Rule::bitwise},
    {"s_xor_saveexec_b64", RegisterUse::Rule::bitwise},
    {"s_xnor_saveexec_b64", RegisterUse::Rule::bitwise},
    {"s_and_b32", RegisterUse::Rule::bit_and},
    {"s_and_b64", RegisterUse::Rule::bit_and},
    {"s_and_saveexec_b64", RegisterUse::Rule::bit_and},
    {"s_or_b32", RegisterUse::Rule::bit_or},
    {"s_or_b64", RegisterUse::Rule::bit_or},
    {"s_or_saveexec_b64", RegisterUse::Rule::bit_or},
    {"s_andn2_b32", RegisterUse::Rule::bit_andn2},
    {"s_andn2_b64", RegisterUse::Rule::bit_andn2},
    {"s_andn2_saveexec_b64", RegisterUse::Rule::bit_andn2},
    {"s_andn2_wrexec_b64", RegisterUse::Rule::bit_andn2},
    {"s_orn2_b32", RegisterUse::Rule::bit_orn2},
    {"s_orn2_b64", RegisterUse::Rule::bit_orn2},
    {"s_orn2_saveexec_b64", RegisterUse::Rule::bit_orn2},
    {"s_nand_b32", RegisterUse::Rule::bit_nand},
    {"s_nand_b64", RegisterUse::Rule::bit_nand},
    {"s_nand_saveexec_b64", RegisterUse::Rule::bit_nand},
    {"s_nor_b32", RegisterUse::Rule::bit_nor},
    {"s_nor_b64", RegisterUse::Rule::bit_nor},
    {"s_nor_saveexec_b64", RegisterUse::Rule::bit_nor},
    {"s_andn1_saveexec_b64", RegisterUse::Rule::bit_andn1},
    {"s_andn1_wrexec_b64", RegisterUse::Rule::bit_andn1},
    {"s_orn1_saveexec_b64", RegisterUse::Rule::bit_orn1},
};

RegisterUse::Kind kind_of(const Inst& inst) {
  const std::string_view name = inst.row->name;
  if (name == "s_waitcnt") return RegisterUse::Kind::wait;
  if (name == "s_nop") return RegisterUse::Kind::nop;
  if (name.starts_with("buffer_wbinvl1")) return RegisterUse::Kind::acquire;
  switch (inst.cls) {
    case InstClass::smem:
      return RegisterUse::Kind::smem;
    case InstClass::vmem:
      return RegisterUse::Kind::vmem;
    case InstClass::lds:
      return name.ends_with("permute_b32") || name == "ds_swizzle_b32"
                 ? RegisterUse::Kind::lds_exchange
                 : RegisterUse::Kind::lds;
    case InstClass::valu:
      // v_nop and the opcodes without a lane function move whole registers.
      return inst.lanes ? RegisterUse::Kind::plain : RegisterUse::Kind::lane_move;
    default:
      return RegisterUse::Kind::plain;
  }
}

uint8_t memory_flags(const Inst& inst) {
  const std::string_view name = inst.row->name;
  auto has = [&](const char* part) { return name.find(part) != name.npos; };
  unsigned bits = 0;
  if (has("buffer_")) bits |= RegisterUse::kBuffer;
  if (has("flat_")) bits |= RegisterUse::kFlat;
  if (has("_store_")) bits |= RegisterUse::kStore;
  if (has("_atomic_")) bits |= RegisterUse::kAtomic;
  return static_cast<uint8_t>(bits);
}

void add_scalar(RegisterUse& use, uint16_t number) {
  use.scalars[number / 64] |= 1ull << (number % 64);
}
void add_scalars(RegisterUse& use, const Operand& o) {
  if (o.where == Where::scc) add_scalar(use, kSccNumber);
  const bool vcc = o.where == Where::vccz;
  if (vcc) {
    add_scalar(use, kVccNumber);
    add_scalar(use, kVccNumber + 1);
  }
  if (o.where != Where::sgpr) return;
  for (uint16_t i = 0; i < o.dwords; ++i) add_scalar(use, o.index + i);
}

void add_implicit_scalars(RegisterUse& use, const Inst& inst) {
  const OpcodeRow& row = *inst.row;
  if (row.has(OpcodeRow::kReadsScc) || row.has(OpcodeRow::kWritesScc)) add_scalar(use, kSccNumber);
  if (row.name.starts_with("s_cbranch_vcc")) add_scalars(use, {Where::vccz, 1, 0});
  if (row.has(OpcodeRow::kWritesExec)) add_scalars(use, {Where::sgpr, 2, kExecNumber});
  if (row.name == "ds_append" || row.name == "ds_consume") add_scalar(use, kM0Number);
}

size_t row_count(const Inst& inst) {
  size_t rows = 0;
  for (const Operand& o : inst.src) rows += o.where == Where::vgpr ? o.dwords : 0;
  return rows;
}
bool fits(const Inst& inst) {
  return row_count(inst) <= QuickUse().source.size() &&
         (inst.dst.where != Where::vgpr || inst.dst.dwords <= QuickUse().destination.size());
}

// A store of more than 64 bits whose data registers the next VALU instruction may not overwrite. In
// MUBUF the data goes out in time when the offset is a register.
bool is_wide_store(const Inst& inst) {
  if (inst.cls != InstClass::vmem) return false;
  const bool buffer = inst.row->name.starts_with("buffer_");
  const Operand& data = inst.src[buffer ? 0 : 1];
  return data.where == Where::vgpr && data.dwords > 2 &&
         !(buffer && inst.src[3].where == Where::sgpr);
}

bool consumes_hazard(const Inst& inst, const Inst* previous, const Modifiers& mods) {
  const std::string_view name = inst.row->name;
  if (inst.cls == InstClass::valu && previous && is_wide_store(*previous)) return true;
  if (mods.dpp || inst.cls == InstClass::vmem) return true;
  if (name.starts_with("v_div_fmas") || name == "v_readlane_b32" || name == "v_writelane_b32" ||
      name.starts_with("s_setreg") || name.starts_with("s_getreg"))
    return true;
  auto asks_for_zero = [](const Operand& o) {
    return o.where == Where::vccz || o.where == Where::execz;
  };
  return inst.cls == InstClass::valu && std::ranges::any_of(inst.src, asks_for_zero);
}

}  // namespace

RegisterUse register_use_of(const Inst& inst, const Inst* previous, const Modifiers* modifiers) {
  RegisterUse use;
  use.kind = kind_of(inst);
  if (inst.cls == InstClass::vmem) use.flags = memory_flags(inst);
  const auto rule = std::ranges::find(kRules, inst.row->name, &NamedRule::name);
  if (rule != std::end(kRules)) use.rule = rule->rule;
  if (consumes_hazard(inst, previous, modifiers[inst.modifiers]))
    use.flags |= RegisterUse::kConsumesHazard;
  add_scalars(use, inst.dst);
  add_scalars(use, inst.mask_dst);
  for (const Operand& o : inst.src) add_scalars(use, o);
  add_implicit_scalars(use, inst);
  if (use.kind == RegisterUse::Kind::plain && !fits(inst)) use.kind = RegisterUse::Kind::involved;
  return use;
}

bool has_small_lds_access(const Inst& inst) {
  const std::string_view name = inst.row->name;
  auto has_any = [&](std::initializer_list<const char*> parts) {
    return std::ranges::any_of(parts,
                               [&](const char* part) { return name.find(part) != name.npos; });
  };
  if (inst.cls == InstClass::lds) return has_any({"_b8", "_b16", "_u8", "_u16", "_i8", "_i16"});
  return name.starts_with("flat_") && has_any({"byte", "short"});
}

int find_spare_row(std::span<const Inst> insts) {
  std::array<bool, 256> named{};
  auto name = [&](const Operand& o) {
    for (size_t i = 0; o.where == Where::vgpr && i < o.dwords; ++i) named[o.index + i] = true;
  };
  for (const Inst& inst : insts) {
    name(inst.dst);
    for (const Operand& o : inst.src) name(o);
  }
  const auto spare = std::ranges::find(named, false);
  return spare == named.end() ? -1 : static_cast<int>(spare - named.begin());
}

QuickUse quick_use_of(const Inst& inst, const RegisterUse& use, int spare_row) {
  QuickUse quick;
  quick.scalars = fold_scalars(use.scalars);
  if (spare_row < 0 || row_count(inst) > quick.source.size()) return quick;
  const bool plain = use.kind == RegisterUse::Kind::plain;
  quick.complete = true;
  quick.special = !plain || use.has(RegisterUse::kConsumesHazard);
  quick.source.fill(static_cast<uint8_t>(spare_row));
  quick.destination.fill(static_cast<uint8_t>(spare_row));
  size_t next = 0;
  for (const Operand& o : inst.src) {
    for (size_t i = 0; o.where == Where::vgpr && i < o.dwords; ++i)
      quick.source[next++] = static_cast<uint8_t>(o.index + i);
  }
  for (size_t i = 0; plain && inst.dst.where == Where::vgpr && i < inst.dst.dwords; ++i)
    quick.destination[i] = static_cast<uint8_t>(inst.dst.index + i);
  return quick;
}

}  // namespace fasim
