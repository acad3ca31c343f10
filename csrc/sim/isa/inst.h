// One decoded instruction: everything that execution needs, in one cache line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fasim {

struct Wave;
struct Inst;
struct LaneArgs;
struct OpcodeRow;

using RunFunction = void (*)(Wave&, const Inst&);
using LaneFunction = void (*)(LaneArgs&);

enum class InstClass : uint8_t { valu, salu, smem, vmem, lds, branch, other };
inline constexpr size_t kInstClasses = 7;
inline constexpr std::array<const char*, kInstClasses> kInstClassNames = {
    "valu", "salu", "smem", "vmem", "lds", "branch", "other"};

enum class Where : uint8_t {
  none,
  vgpr,
  sgpr,      // index is the hardware operand number: s0-101, vcc 106, m0 124, exec 126, ...
  constant,  // index into Program::constants
  scc,
  vccz,
  execz,
};

struct Operand {
  Where where = Where::none;
  uint8_t dwords = 0;
  uint16_t index = 0;
};

// VOP3, VOP3P, SDWA and DPP modifiers. Bit i of a mask belongs to source i.
struct Modifiers {
  enum class Select : uint8_t { byte_0, byte_1, byte_2, byte_3, word_0, word_1, dword };
  enum class Unused : uint8_t { pad, sext, preserve };

  uint8_t neg = 0, abs = 0, sext = 0;
  uint8_t op_sel = 0;         // bit 3: destination half of a VOP3 f16/i16 opcode
  uint8_t op_sel_hi = 0b111;  // VOP3P only
  uint8_t neg_lo = 0, neg_hi = 0;
  bool clamp = false;
  uint8_t omod = 0;  // 0 none, 1 times 2, 2 times 4, 3 divided by 2

  bool sdwa = false;
  Select dst_select = Select::dword;
  Unused dst_unused = Unused::pad;
  std::array<Select, 2> src_select = {Select::dword, Select::dword};

  bool dpp = false;
  bool bound_ctrl_zero = false;
  std::array<uint8_t, 64> dpp_lane{};  // source lane of each lane
  uint64_t dpp_in_range = 0;           // lanes whose source lane exists
  uint64_t dpp_write_mask = 0;         // row_mask and bank_mask, per lane
};

struct WaitCounts {
  uint8_t vm = 63, exp = 7, lgkm = 15;  // the largest value each counter may still have
};

// Offsets and flags of an LDS or memory instruction.
struct MemoryFields {
  int32_t offset = 0;
  uint8_t offset1 = 0;  // second offset of ds_read2/ds_write2, whose first is `offset`
  bool glc = false;
  bool offen = false, idxen = false;  // MUBUF
};

inline constexpr size_t kMaxSources = 4;

struct alignas(64) Inst {
  RunFunction run = nullptr;
  LaneFunction lanes = nullptr;  // VALU only
  const OpcodeRow* row = nullptr;
  Operand dst;
  Operand mask_dst;  // carry, compare result or div_scale flag
  std::array<Operand, kMaxSources> src;
  union {
    int64_t immediate = 0;  // simm16, branch target as Inst index, s_load offset
    WaitCounts wait;
    MemoryFields memory;
  };
  uint32_t modifiers = 0;  // index into Program::modifiers; 0: none is set
  InstClass cls = InstClass::other;
  bool vgprs_only = false;  // VALU: neither a scalar, a constant nor a mask among the operands
};
static_assert(sizeof(Inst) == 64);

}  // namespace fasim
