// flashattn-sim opcodes: the names of all opcodes that the simulator can execute.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "exec/rows.h"
#include "tools/command_line.h"
#include "tools/commands.h"

namespace fasim::tools {

int opcodes(const std::vector<std::string>& words) {
  CommandLine(words, {}, {}).positional({});
  std::vector<std::string_view> names;
  for (Rows rows : opcode_tables()) {
    for (const OpcodeRow& row : rows) names.push_back(row.name);
  }
  std::ranges::sort(names);
  for (std::string_view name : names)
    std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
  return 0;
}

}  // namespace fasim::tools
