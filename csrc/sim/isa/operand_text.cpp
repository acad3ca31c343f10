#include "isa/operand_text.h"

#include <bit>
#include <charconv>
#include <cstdlib>

#include "isa/opcodes.h"

namespace fasim {
namespace {

struct NamedRegister {
  std::string_view name;
  uint16_t index;
  uint8_t dwords;
};
constexpr NamedRegister kNamedRegisters[] = {
    {"vcc", 106, 2},
    {"vcc_lo", 106, 1},
    {"vcc_hi", 107, 1},
    {"exec", 126, 2},
    {"exec_lo", 126, 1},
    {"exec_hi", 127, 1},
    {"m0", 124, 1},
    {"flat_scratch", 102, 2},
    {"flat_scratch_lo", 102, 1},
    {"flat_scratch_hi", 103, 1},
    {"xnack_mask", 104, 2},
    {"xnack_mask_lo", 104, 1},
    {"xnack_mask_hi", 105, 1},
};

struct NamedConstant {
  std::string_view name;
  uint64_t value;
};
// Flat apertures: the driver puts LDS at 0x1_0000_0000_0000 and scratch at 0x2_..., 4 GiB each.
constexpr NamedConstant kNamedConstants[] = {
    {"src_shared_base", 0x1000000000000},
    {"src_shared_limit", 0x10000ffffffff},
    {"src_private_base", 0x2000000000000},
    {"src_private_limit", 0x20000ffffffff},
};

std::optional<OperandText> parse_register(std::string_view token) {
  OperandText out;
  for (const NamedRegister& r : kNamedRegisters) {
    if (token == r.name) {
      out.operand = {Where::sgpr, r.dwords, r.index};
      return out;
    }
  }
  uint16_t base = 0;
  if (token.starts_with("ttmp")) {
    out.operand.where = Where::sgpr;
    base = 108;
    token.remove_prefix(4);
  } else if (token.starts_with("v") || token.starts_with("s")) {
    out.operand.where = token[0] == 'v' ? Where::vgpr : Where::sgpr;
    token.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  const bool range = token.starts_with("[") && token.ends_with("]");
  if (range) token = token.substr(1, token.size() - 2);
  const size_t colon = token.find(':');
  const auto first = parse_integer(token.substr(0, colon));
  const auto last = colon == token.npos ? first : parse_integer(token.substr(colon + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > 255) return std::nullopt;
  out.operand.index = static_cast<uint16_t>(base + *first);
  out.operand.dwords = static_cast<uint8_t>(*last - *first + 1);
  return out;
}

// 16-bit integer operands take a float constant as 32 bits.
bool is_half(Kind kind) { return kind == Kind::f16 || kind == Kind::pk_f16; }

// The bits that the hardware's inline constant has in an operand of this kind.
uint64_t encode_float(double value, Kind kind) {
  // 1/(2 pi) is printed rounded, so its bits are fixed here.
  const bool inverse_two_pi = value > 0.159154 && value < 0.159155;
  if (dwords_of(kind) == 2)
    return inverse_two_pi ? 0x3fc45f306dc9c882 : std::bit_cast<uint64_t>(value);
  if (is_half(kind)) {
    if (inverse_two_pi) return 0x3118;
    return std::bit_cast<uint16_t>(static_cast<_Float16>(static_cast<float>(value)));
  }
  return inverse_two_pi ? 0x3e22f983 : std::bit_cast<uint32_t>(static_cast<float>(value));
}

// Inline integers are printed in decimal and sign-extend; literals are printed in hex, zero-extend,
// and fill the high dword of an f64.
uint64_t encode_integer(int64_t value, Kind kind, bool hex) {
  if (kind == Kind::f64 && hex) return static_cast<uint64_t>(value) << 32;
  if (kind == Kind::b64 || kind == Kind::f64) return static_cast<uint64_t>(value);
  return static_cast<uint32_t>(value);
}

std::optional<OperandText> parse_constant(std::string_view token, Kind kind) {
  OperandText out;
  out.operand = {Where::constant, dwords_of(kind), 0};
  for (const NamedConstant& c : kNamedConstants) {
    if (token == c.name) {
      out.value = c.value;
      return out;
    }
  }
  if (const auto integer = parse_integer(token)) {
    out.value = encode_integer(*integer, kind, token.find("0x") != token.npos);
    return out;
  }
  const std::string text(token);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  out.value = encode_float(value, kind);
  return out;
}

std::optional<OperandText> parse_special(std::string_view token) {
  OperandText out;
  if (token == "off") return out;
  if (token == "src_scc" || token == "scc") out.operand = {Where::scc, 1, 0};
  if (token == "src_vccz") out.operand = {Where::vccz, 1, 0};
  if (token == "src_execz") out.operand = {Where::execz, 1, 0};
  if (out.operand.where == Where::none) return std::nullopt;
  return out;
}

// Removes `prefix` and the matching last character.
bool unwrap(std::string_view& token, std::string_view prefix) {
  if (!token.starts_with(prefix)) return false;
  token.remove_prefix(prefix.size());
  token.remove_suffix(1);
  return true;
}

}  // namespace

AssemblyLine split_line(std::string_view text) {
  AssemblyLine line;
  while (!text.empty() && (text[0] == '\t' || text[0] == ' ')) text.remove_prefix(1);
  const size_t mnemonic_end = std::min(text.find_first_of(" \t"), text.size());
  line.mnemonic = text.substr(0, mnemonic_end);
  text.remove_prefix(mnemonic_end);

  // Commas separate operands, spaces separate modifiers, both only outside brackets.
  bool in_modifiers = false;
  int depth = 0;
  size_t begin = 0;
  auto flush = [&](size_t end) {
    if (end > begin)
      (in_modifiers ? line.modifiers : line.operands).push_back(text.substr(begin, end - begin));
    begin = end + 1;
  };
  bool after_comma = true;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (depth > 0 || (c != ',' && c != ' ' && c != '\t')) {
      after_comma = false;
      continue;
    }
    flush(i);
    // A space that does not follow a comma ends the operand list.
    if (c != ',' && !after_comma) in_modifiers = true;
    if (c == ',') after_comma = true;
  }
  return line;
}

std::optional<int64_t> parse_integer(std::string_view token) {
  const bool negative = token.starts_with("-");
  if (negative) token.remove_prefix(1);
  int base = 10;
  if (token.starts_with("0x")) {
    base = 16;
    token.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

std::vector<int64_t> parse_list(std::string_view token) {
  std::vector<int64_t> values;
  if (token.starts_with("[") && token.ends_with("]")) token = token.substr(1, token.size() - 2);
  while (!token.empty()) {
    const size_t comma = std::min(token.find(','), token.size());
    if (const auto value = parse_integer(token.substr(0, comma))) values.push_back(*value);
    token.remove_prefix(std::min(comma + 1, token.size()));
  }
  return values;
}

std::optional<OperandText> parse_operand(std::string_view token, Kind kind) {
  if (auto constant = parse_constant(token, kind)) return constant;
  if (auto special = parse_special(token)) return special;
  const bool neg = token.starts_with("-");
  if (neg) token.remove_prefix(1);
  bool abs = unwrap(token, "|");
  const bool sext = !abs && unwrap(token, "sext(");
  // -|1.0| and neg(1) are how a modified constant prints.
  bool neg_call = !abs && !sext && unwrap(token, "neg(");
  abs = abs || (!sext && unwrap(token, "abs("));
  auto out = parse_register(token);
  if (!out) out = parse_constant(token, kind);
  if (!out) out = parse_special(token);
  if (!out) return std::nullopt;
  out->neg = neg || neg_call;
  out->abs = abs;
  out->sext = sext;
  return out;
}

}  // namespace fasim
