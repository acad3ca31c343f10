// flashattn-sim disasm: the instructions of a file, as the simulator decoded them.
#include <cstdio>
#include <map>

#include "device/code_object.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/kernel_arguments.h"

namespace fasim::tools {

int disasm(const std::vector<std::string>& words) {
  const CommandLine line(words, {}, {});
  AddressSpace memory;
  const CodeObject object(read_file(line.positional({"FILE"})[0]), kGfx906, memory);
  if (object.kernels().empty()) return 0;
  std::map<uint64_t, std::string> labels;
  for (const auto& [name, kernel] : object.kernels()) labels[kernel.entry] = name;
  const Program& program = object.program();
  // The last Inst is the sentinel behind the code.
  for (size_t i = 0; i + 1 < program.insts.size(); ++i) {
    const uint64_t offset = uint64_t{program.dword_offset[i]} * 4;
    if (const auto label = labels.find(program.load_address + offset); label != labels.end())
      std::printf("\n%s:\n", label->second.c_str());
    std::printf("  %06llx  %s\n", static_cast<unsigned long long>(offset),
                program.disassembly[i].c_str());
  }
  return 0;
}

}  // namespace fasim::tools
