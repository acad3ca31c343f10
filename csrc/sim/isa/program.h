// A code object's .text, decoded once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/inst.h"
#include "isa/register_use.h"
#include "isa/segment.h"

namespace fasim {

// One inline or literal constant spread over 64 lanes, so that it can serve as a VGPR row. The
// upper dword of a 64-bit constant fills the adjacent row, as in a VGPR pair.
struct alignas(64) ConstantRow {
  std::array<uint32_t, 128> lanes;
};

struct Program {
  static constexpr uint32_t kNoInst = ~0u;

  std::vector<Inst> insts;  // ends with a sentinel that faults
  std::vector<ConstantRow> constants;
  std::vector<Modifiers> modifiers;  // [0] is the default, for an Inst without any
  std::vector<RegisterUse> uses;     // by Inst index
  std::vector<QuickUse> quick_uses;  // by Inst index
  int spare_row = -1;                // the VGPR that stands for "none" in quick_uses
  std::array<uint64_t, 2> named_scalars{};
  bool has_small_lds_access = false;     // of less than a dword
  std::vector<Segment> segments;         // [0] stands for none
  std::vector<SegmentStart> segment_at;  // by Inst index
  std::vector<std::string> disassembly;  // by Inst index
  std::vector<uint32_t> dword_offset;    // by Inst index: position in .text
  std::vector<uint32_t> inst_at_dword;   // by position in .text; kNoInst inside an instruction
  uint64_t load_address = 0;
  std::string mcpu;

  uint64_t address_of(const Inst& inst) const;
  // Null when no instruction starts at `address`.
  const Inst* find(uint64_t address) const;
  const std::string& text_of(const Inst& inst) const;
};

// Disassembles `text` (which runs at `load_address`) for `mcpu`, e.g. "gfx906". Never faults: a
// word that is no instruction, or one without semantics here, becomes an Inst that faults when it
// is executed, because padding and data behind s_endpgm are common. Throws std::runtime_error only
// when this LLVM has no AMDGPU target.
std::shared_ptr<const Program> decode_program(std::span<const uint8_t> text, uint64_t load_address,
                                              std::string_view mcpu);

}  // namespace fasim
