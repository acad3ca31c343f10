// One row per base opcode; encodings (e32, e64, SDWA, DPP) are modifiers of the same row.
//
// Rows live beside their semantics in exec/; opcodes.cpp joins the tables.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "isa/inst.h"

namespace fasim {

// What an operand holds. Decides its size and how a constant written as `1.0` is encoded.
enum class Kind : uint8_t {
  none,
  b16,
  b32,
  b64,
  f16,
  f32,
  f64,
  pk16,      // two 16-bit integers
  pk_f16,    // two f16; a float constant sits in the low half
  b16_half,  // destination: one half, the other is kept
  f16_half,
  f16_low,
  f16_high,
  mix,     // fma_mix source
  mask,    // one bit per lane in an SGPR pair
  vcc_in,  // mask read from VCC, absent from the text
  b96,
  b128,
  b256,
  b512,
  simm16,  // taken from the instruction word
};

struct OpcodeRow {
  enum Flag : uint16_t {
    kMaskDst = 1,      // writes a lane mask (after dst in the text)
    kReadsDst = 2,     // the last source is the destination, absent from the text
    kFloatMath = 4,    // obeys MODE's denormal setting
    kGlcReturns = 8,   // atomic: dst exists only with glc
    kWritesExec = 16,  // v_cmpx
    kBranch = 32,      // simm16 is a branch distance in dwords
    kSaturates = 64,   // integer opcode with its own meaning of clamp
    kReadsScc = 128,
    kWritesScc = 256,
  };

  std::string_view name;
  RunFunction run = nullptr;
  LaneFunction lanes = nullptr;
  InstClass cls = InstClass::other;
  uint16_t flags = 0;
  Kind dst = Kind::none;
  std::array<Kind, kMaxSources> src{};

  bool has(Flag flag) const { return flags & flag; }
};

// Null when there is no such opcode. `name` carries no encoding suffix.
const OpcodeRow* find_opcode(std::string_view name);
size_t opcode_count();

uint8_t dwords_of(Kind kind);

}  // namespace fasim
