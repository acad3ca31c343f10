#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include "check/segments.h"
#include "check/text.h"
#include "exec/flow.h"
#include "isa/dpp.h"
#include "isa/opcodes.h"
#include "isa/operand_text.h"
#include "isa/program.h"

namespace fasim {
namespace {

constexpr OpcodeRow kUnknownRow = {.name = "unknown", .run = &run_unknown};

class Disassembler {
 public:
  explicit Disassembler(std::string_view mcpu) {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeAMDGPUTargetInfo();
      LLVMInitializeAMDGPUTargetMC();
      LLVMInitializeAMDGPUDisassembler();
    });
    context_ = LLVMCreateDisasmCPU("amdgcn-amd-amdhsa", std::string(mcpu).c_str(), nullptr, 0,
                                   nullptr, nullptr);
    if (!context_) {
      throw std::runtime_error("this LLVM cannot disassemble amdgcn for " + std::string(mcpu) +
                               "; install an LLVM >= 17 built with the AMDGPU target");
    }
  }
  ~Disassembler() { LLVMDisasmDispose(context_); }
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  // Bytes of the instruction at `bytes`; 0 when it is none.
  size_t next(std::span<const uint8_t> bytes, uint64_t pc, std::string& text) {
    char buffer[256];
    const size_t size = LLVMDisasmInstruction(context_, const_cast<uint8_t*>(bytes.data()),
                                              bytes.size(), pc, buffer, sizeof buffer);
    text = size ? buffer : "";
    text.erase(0, text.find_first_not_of(" \t"));
    std::replace(text.begin(), text.end(), '\t', ' ');
    return size;
  }

 private:
  LLVMDisasmContextRef context_ = nullptr;
};

class Decoder {
 public:
  explicit Decoder(Program& program) : program_(program) { program_.modifiers.emplace_back(); }

  Inst decode(std::string_view text, uint32_t word);

 private:
  bool decode_operands(const AssemblyLine& line, uint32_t word);
  bool decode_one(std::string_view token, Kind kind, Operand& to, int source);
  bool decode_modifier(std::string_view token);
  bool decode_select(std::string_view key, std::string_view value);
  void finish(uint32_t word);
  uint16_t constant(uint64_t value);

  Program& program_;
  std::map<uint64_t, uint16_t> constants_;
  // The instruction being decoded.
  Inst inst_;
  const OpcodeRow* row_ = nullptr;
  Modifiers mods_;
  bool modified_ = false;
  unsigned row_mask_ = 0xf, bank_mask_ = 0xf;
};

bool strip(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

Inst unknown() {
  Inst inst;
  inst.run = kUnknownRow.run;
  inst.row = &kUnknownRow;
  return inst;
}

Inst Decoder::decode(std::string_view text, uint32_t word) {
  const AssemblyLine line = split_line(text);
  std::string_view name = line.mnemonic;
  inst_ = Inst();
  mods_ = Modifiers();
  modified_ = false;
  row_mask_ = bank_mask_ = 0xf;
  mods_.sdwa = strip(name, "_sdwa");
  const bool dpp = strip(name, "_dpp");
  if (!strip(name, "_e32")) strip(name, "_e64");
  row_ = find_opcode(name);
  if (!row_) return unknown();
  modified_ = mods_.sdwa || dpp;
  // fma_mix prints op_sel_hi when it is not zero, packed opcodes when it is not all ones.
  if (row_->src[0] == Kind::mix) mods_.op_sel_hi = 0;
  inst_.run = row_->run;
  inst_.lanes = row_->lanes;
  inst_.row = row_;
  inst_.cls = row_->cls;
  // SOPP and SOPK immediates come from the word; their text is symbolic ("vmcnt(0) lgkmcnt(1)").
  const bool symbolic = std::ranges::find(row_->src, Kind::simm16) != row_->src.end();
  if (!symbolic) {
    for (std::string_view token : line.modifiers) {
      if (!decode_modifier(token)) return unknown();
    }
  }
  if (!decode_operands(line, word)) return unknown();
  finish(word);
  return inst_;
}

uint16_t Decoder::constant(uint64_t value) {
  const auto [at, fresh] = constants_.try_emplace(value, program_.constants.size());
  if (fresh) {
    ConstantRow row;
    std::fill_n(row.lanes.begin(), 64, static_cast<uint32_t>(value));
    std::fill_n(row.lanes.begin() + 64, 64, static_cast<uint32_t>(value >> 32));
    program_.constants.push_back(row);
  }
  return at->second;
}

// `source` is the index for neg/abs/sext bits; -1 for a destination.
bool Decoder::decode_one(std::string_view token, Kind kind, Operand& to, int source) {
  if (kind == Kind::mix) kind = mods_.op_sel_hi >> source & 1 ? Kind::f16 : Kind::f32;
  const auto parsed = parse_operand(token, kind);
  if (!parsed) return false;
  to = parsed->operand;
  if (to.where == Where::constant) {
    if (source < 0 || program_.constants.size() > UINT16_MAX) return false;
    to.index = constant(parsed->value);
  }
  if (source >= 0) {
    mods_.neg |= parsed->neg << source;
    mods_.abs |= parsed->abs << source;
    mods_.sext |= parsed->sext << source;
    modified_ = modified_ || parsed->neg || parsed->abs || parsed->sext;
  }
  return true;
}

bool Decoder::decode_operands(const AssemblyLine& line, uint32_t word) {
  size_t next = 0;
  auto take = [&]() -> std::string_view {
    return next < line.operands.size() ? line.operands[next++] : std::string_view();
  };
  const bool has_dst =
      row_->dst != Kind::none && (!row_->has(OpcodeRow::kGlcReturns) || inst_.memory.glc);
  if (has_dst && !decode_one(take(), row_->dst, inst_.dst, -1)) return false;
  if (row_->has(OpcodeRow::kMaskDst) && !decode_one(take(), Kind::mask, inst_.mask_dst, -1))
    return false;
  for (size_t i = 0; i < kMaxSources; ++i) {
    const Kind kind = row_->src[i];
    const bool last = i + 1 == kMaxSources || row_->src[i + 1] == Kind::none;
    switch (kind) {
      case Kind::none:
        return next == line.operands.size();
      case Kind::vcc_in:
        inst_.src[kMaxSources - 1] = {Where::sgpr, 2, 106};
        break;
      case Kind::mask:
        if (!decode_one(take(), kind, inst_.src[kMaxSources - 1], -1)) return false;
        break;
      case Kind::simm16:
        take();
        inst_.immediate = static_cast<int16_t>(word & 0xffff);
        break;
      default:
        if (last && row_->has(OpcodeRow::kReadsDst)) {
          inst_.src[i] = inst_.dst;
        } else if (!decode_one(take(), kind, inst_.src[i], static_cast<int>(i))) {
          return false;
        }
    }
  }
  return next == line.operands.size();
}

uint8_t bits_from_list(std::string_view list) {
  uint8_t bits = 0;
  size_t i = 0;
  for (int64_t value : parse_list(list)) bits |= static_cast<uint8_t>((value & 1) << i++);
  return bits;
}

// VOP3 appends the destination's half to those of the sources; VOP3P has no such entry.
uint8_t op_sel_bits(std::string_view list, const OpcodeRow& row) {
  const uint8_t bits = bits_from_list(list);
  const auto sources = static_cast<size_t>(
      std::ranges::count_if(row.src, [](Kind kind) { return kind != Kind::none; }));
  if (parse_list(list).size() <= sources) return bits;
  const uint8_t source_mask = static_cast<uint8_t>((1u << sources) - 1);
  return static_cast<uint8_t>((bits & source_mask) | (bits >> sources & 1) << 3);
}

bool Decoder::decode_select(std::string_view key, std::string_view value) {
  constexpr std::string_view kSelects[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                           "WORD_0", "WORD_1", "DWORD"};
  constexpr std::string_view kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
  if (key == "dst_unused") {
    const auto at = std::ranges::find(kUnused, value);
    mods_.dst_unused = static_cast<Modifiers::Unused>(at - std::begin(kUnused));
    return at != std::end(kUnused);
  }
  const auto at = std::ranges::find(kSelects, value);
  if (at == std::end(kSelects)) return false;
  const auto select = static_cast<Modifiers::Select>(at - std::begin(kSelects));
  if (key == "dst_sel") mods_.dst_select = select;
  if (key == "src0_sel") mods_.src_select[0] = select;
  if (key == "src1_sel") mods_.src_select[1] = select;
  return true;
}

bool Decoder::decode_modifier(std::string_view token) {
  const size_t colon = std::min(token.find(':'), token.size());
  const std::string_view key = token.substr(0, colon);
  const std::string_view value = token.substr(std::min(colon + 1, token.size()));
  if (row_->cls == InstClass::vmem || row_->cls == InstClass::lds || row_->cls == InstClass::smem) {
    MemoryFields& m = inst_.memory;
    const auto number = parse_integer(value);
    // The offset of ds_swizzle is printed as a formula; finish() takes it from the word.
    if (key == "offset" || key == "offset0")
      m.offset = static_cast<int32_t>(number.value_or(0));
    else if (key == "offset1")
      m.offset1 = static_cast<uint8_t>(number.value_or(0));
    else if (key == "glc")
      m.glc = true;
    else if (key == "offen")
      m.offen = true;
    else if (key == "idxen")
      m.idxen = true;
    else if (key != "slc" && key != "nv")
      return false;  // cache hints have no function here
    return true;
  }
  modified_ = true;
  if (key == "clamp")
    mods_.clamp = true;
  else if (key == "mul")
    mods_.omod = value == "2" ? 1 : 2;
  else if (key == "div")
    mods_.omod = 3;
  else if (key == "op_sel")
    mods_.op_sel = op_sel_bits(value, *row_);
  else if (key == "op_sel_hi")
    mods_.op_sel_hi = bits_from_list(value);
  else if (key == "neg_lo")
    mods_.neg_lo = bits_from_list(value);
  else if (key == "neg_hi")
    mods_.neg_hi = bits_from_list(value);
  else if (key == "row_mask")
    row_mask_ = static_cast<unsigned>(parse_integer(value).value_or(0xf));
  else if (key == "bank_mask")
    bank_mask_ = static_cast<unsigned>(parse_integer(value).value_or(0xf));
  else if (key == "bound_ctrl")
    mods_.bound_ctrl_zero = true;  // "bound_ctrl:0" means on
  else if (key.ends_with("_sel") || key == "dst_unused")
    return decode_select(key, value);
  else
    return apply_dpp_control(token, mods_);
  return true;
}

void Decoder::finish(uint32_t word) {
  if (row_->name == "ds_swizzle_b32") inst_.memory.offset = static_cast<int32_t>(word & 0xffff);
  if (row_->name == "s_waitcnt") {
    inst_.wait = {static_cast<uint8_t>((word & 0xf) | (word >> 14 & 3) << 4),
                  static_cast<uint8_t>(word >> 4 & 7), static_cast<uint8_t>(word >> 8 & 15)};
  }
  auto is_vgpr = [](const Operand& o) { return o.where == Where::vgpr || o.where == Where::none; };
  inst_.vgprs_only = inst_.lanes && inst_.dst.where == Where::vgpr &&
                     inst_.mask_dst.where == Where::none && std::ranges::all_of(inst_.src, is_vgpr);
  const bool keeps_half = row_->dst >= Kind::b16_half && row_->dst <= Kind::f16_high;
  const bool mix = row_->src[0] == Kind::mix;
  if (!modified_ && !keeps_half && !(mix && mods_.op_sel_hi)) return;
  if (mods_.dpp) mods_.dpp_write_mask = dpp_lane_mask(row_mask_, bank_mask_);
  inst_.modifiers = static_cast<uint32_t>(program_.modifiers.size());
  program_.modifiers.push_back(mods_);
}

// simm16 counts dwords from the next instruction.
void resolve_branches(Program& program) {
  const auto last = static_cast<uint32_t>(program.insts.size() - 1);
  for (uint32_t i = 0; i < last; ++i) {
    Inst& inst = program.insts[i];
    if (!inst.row->has(OpcodeRow::kBranch)) continue;
    const int64_t dword = program.dword_offset[i] + 1 + inst.immediate;
    const bool inside = dword >= 0 && dword < static_cast<int64_t>(program.inst_at_dword.size());
    const uint32_t target = inside ? program.inst_at_dword[dword] : Program::kNoInst;
    inst.immediate = target == Program::kNoInst ? last : target;
  }
}

void look_up_registers(Program& program) {
  program.spare_row = find_spare_row(program.insts);
  for (const Inst& inst : program.insts) {
    const Inst* previous = &inst == program.insts.data() ? nullptr : &inst - 1;
    const RegisterUse use = register_use_of(inst, previous, program.modifiers.data());
    program.uses.push_back(use);
    program.quick_uses.push_back(quick_use_of(inst, use, program.spare_row));
    for (size_t i = 0; i < 2; ++i) program.named_scalars[i] |= use.scalars[i];
    program.has_small_lds_access = program.has_small_lds_access || has_small_lds_access(inst);
  }
  find_segments(program);
}

}  // namespace

std::shared_ptr<const Program> decode_program(std::span<const uint8_t> code, uint64_t load_address,
                                              std::string_view mcpu) {
  auto program = std::make_shared<Program>();
  program->load_address = load_address;
  program->mcpu = mcpu;
  program->inst_at_dword.assign(code.size() / 4, Program::kNoInst);
  Disassembler disassembler(mcpu);
  Decoder decoder(*program);
  std::string line;
  size_t at = 0;
  auto append = [&](Inst inst, std::string disassembly, size_t offset) {
    program->insts.push_back(inst);
    program->disassembly.push_back(std::move(disassembly));
    program->dword_offset.push_back(static_cast<uint32_t>(offset / 4));
  };
  while (at + 4 <= code.size()) {
    uint32_t word;
    std::memcpy(&word, code.data() + at, 4);
    const size_t size = disassembler.next(code.subspan(at), load_address + at, line);
    program->inst_at_dword[at / 4] = static_cast<uint32_t>(program->insts.size());
    const Inst inst = size ? decoder.decode(line, word) : unknown();
    if (!size) line = text(".long 0x%08x", word);
    if (size && inst.row == &kUnknownRow) line += text("  ; word 0x%08x", word);
    append(inst, line, at);
    at += size ? size : 4;
  }
  append(unknown(), "; beyond the end of .text, or the middle of an instruction", at);
  resolve_branches(*program);
  look_up_registers(*program);
  return program;
}

uint64_t Program::address_of(const Inst& inst) const {
  return load_address + 4ull * dword_offset[&inst - insts.data()];
}

const Inst* Program::find(uint64_t address) const {
  const uint64_t dword = (address - load_address) / 4;
  if (address < load_address || address % 4 || dword >= inst_at_dword.size()) return nullptr;
  const uint32_t index = inst_at_dword[dword];
  return index == kNoInst ? nullptr : &insts[index];
}

const std::string& Program::text_of(const Inst& inst) const {
  return disassembly[&inst - insts.data()];
}

}  // namespace fasim
