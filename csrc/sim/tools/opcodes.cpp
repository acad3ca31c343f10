// flashattn-sim opcodes: what the simulator can execute, a line each of class and name.
#include <algorithm>
#include <cstdio>
#include <string>

#include "exec/rows.h"
#include "tools/command_line.h"
#include "tools/commands.h"

namespace fasim::tools {

int opcodes(const std::vector<std::string>& words) {
  CommandLine(words, {}, {}).positional({});
  std::vector<std::string> lines;
  for (Rows rows : opcode_tables()) {
    for (const OpcodeRow& row : rows) {
      lines.push_back(std::string(kInstClassNames[static_cast<size_t>(row.cls)]) + ' ' +
                      std::string(row.name));
    }
  }
  std::ranges::sort(lines);
  std::printf("%zu opcodes\n", lines.size());
  for (const std::string& line : lines) std::puts(line.c_str());
  return 0;
}

}  // namespace fasim::tools
