#include "isa/opcodes.h"

#include <stdexcept>
#include <string>
#include <unordered_map>

#include "exec/rows.h"

namespace fasim {
namespace {

std::unordered_map<std::string_view, const OpcodeRow*> join_tables() {
  std::unordered_map<std::string_view, const OpcodeRow*> table;
  for (std::span<const OpcodeRow> rows : opcode_tables()) {
    for (const OpcodeRow& row : rows) {
      if (!table.emplace(row.name, &row).second) {
        throw std::logic_error("opcode defined twice: " + std::string(row.name));
      }
    }
  }
  return table;
}

const std::unordered_map<std::string_view, const OpcodeRow*>& table() {
  static const auto joined = join_tables();
  return joined;
}

}  // namespace

const OpcodeRow* find_opcode(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

size_t opcode_count() { return table().size(); }

uint8_t dwords_of(Kind kind) {
  switch (kind) {
    case Kind::none:
      return 0;
    case Kind::b64:
    case Kind::f64:
    case Kind::mask:
    case Kind::vcc_in:
      return 2;
    case Kind::b96:
      return 3;
    case Kind::b128:
      return 4;
    case Kind::b256:
      return 8;
    case Kind::b512:
      return 16;
    default:
      return 1;
  }
}

}  // namespace fasim
