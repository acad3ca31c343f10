// The pieces of one line of LLVM's AMDGPU assembly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/inst.h"
#include "isa/opcodes.h"

namespace fasim {

struct AssemblyLine {
  std::string_view mnemonic;
  std::vector<std::string_view> operands;
  std::vector<std::string_view> modifiers;  // "offset:16", "clamp", "quad_perm:[1,0,3,2]"
};
AssemblyLine split_line(std::string_view text);

struct OperandText {
  Operand operand;  // a constant has where == constant and its bits in `value`
  uint64_t value = 0;
  bool neg = false, abs = false, sext = false;
};
// Nullopt when the token is none of the operand forms that the card's registers and constants have.
std::optional<OperandText> parse_operand(std::string_view token, Kind kind);

std::optional<int64_t> parse_integer(std::string_view token);
// "[1,0,3,2]" -> 1, 0, 3, 2
std::vector<int64_t> parse_list(std::string_view token);

}  // namespace fasim
