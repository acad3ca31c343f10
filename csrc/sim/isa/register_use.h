// Which registers an instruction touches and how its result depends on them, in the form that the
// strict checks look up before every execution. Made once, when a program is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "isa/inst.h"

namespace fasim {

// SCC among the scalar registers; 125 names no register on gfx9.
inline constexpr uint16_t kSccNumber = 125;

// 128 scalars in 64 bits: s0 to s61 have their own, bit 63 is for VCC and SCC, bit 62 for all
// others.
inline uint64_t fold_scalars(const std::array<uint64_t, 2>& scalars) {
  constexpr uint64_t kOwn = (1ull << 62) - 1;
  constexpr uint64_t kConditions = 3ull << (106 - 64) | 1ull << (kSccNumber - 64);
  const bool conditions = scalars[1] & kConditions;
  const bool others = (scalars[0] & ~kOwn) | (scalars[1] & ~kConditions);
  return (scalars[0] & kOwn) | static_cast<uint64_t>(others) << 62 |
         static_cast<uint64_t>(conditions) << 63;
}

// The part that is looked at before every execution. 16 bytes, because these stream through the
// host's cache beside the instructions.
struct QuickUse {
  uint64_t scalars = 0;             // of RegisterUse, both words in one
  std::array<uint8_t, 4> source{};  // VGPR rows; the spare row where there are fewer
  std::array<uint8_t, 2> destination{};
  bool special = true;    // examine the instruction in any case
  bool complete = false;  // `source` names all rows that are read
};
static_assert(sizeof(QuickUse) == 16);

struct RegisterUse {
  enum class Kind : uint8_t {
    plain,      // scalar, or a VALU opcode whose rows fit QuickUse
    involved,   // any other VALU opcode
    lane_move,  // v_readlane, v_readfirstlane, v_writelane, v_swap
    lds,
    lds_exchange,  // ds_swizzle, ds_permute, ds_bpermute
    smem,
    vmem,
    wait,
    nop,
    acquire,  // buffer_wbinvl1: what other workgroups released becomes visible
  };

  // When a result is defined although a source is not.
  enum class Rule : uint8_t {
    all,         // only if every source is
    any,         // if one source is: opcodes that put a register together from parts
    select,      // as the chosen source is
    low_first,   // 64 bits: the low dword of the result does not see the high ones of the sources
    high_first,  // and the other way round
    bitwise,     // scalar moves and xor: bit by bit
    bit_and,
    bit_or,
    bit_andn2,
    bit_orn2,
    bit_nand,
    bit_nor,
    bit_andn1,
    bit_orn1,
  };

  std::array<uint64_t, 2> scalars{};  // bit n: reads or writes scalar register n
  Kind kind = Kind::plain;
  Rule rule = Rule::all;
  uint8_t flags = 0;

  enum Flag : uint8_t {
    kConsumesHazard = 1,  // may come too early after another instruction
    kBuffer = 2,          // vmem
    kFlat = 4,
    kStore = 8,
    kAtomic = 16,
  };
  bool has(Flag flag) const { return flags & flag; }

  bool touches(uint16_t scalar) const { return scalars[scalar / 64] >> (scalar % 64) & 1; }
};

// `previous`: the instruction before it in the text, null at the start. `modifiers` is the
// program's table.
RegisterUse register_use_of(const Inst& inst, const Inst* previous, const Modifiers* modifiers);

// Whether it may read or write less than a dword of LDS.
bool has_small_lds_access(const Inst& inst);

// A VGPR row that no instruction names, so that it can stand for "none"; -1 when all are named.
int find_spare_row(std::span<const Inst> insts);
QuickUse quick_use_of(const Inst& inst, const RegisterUse& use, int spare_row);

}  // namespace fasim
