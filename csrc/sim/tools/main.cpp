// The command-line tool: runs, lists or disassembles any gfx906 code object.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/kernel_arguments.h"

namespace {

using namespace fasim::tools;

constexpr const char* kHelp =
    "flashattn-sim: runs gfx906 kernels on a simulated AMD Instinct MI50\n"
    "\n"
    "flashattn-sim info FILE      lists the kernels: registers, LDS, spills, occupancy\n"
    "flashattn-sim disasm FILE    prints the instructions\n"
    "flashattn-sim opcodes        lists the instructions that the simulator executes\n";

constexpr const char* kRunHelpTail =
    "  --trace              print every executed instruction: address, exec, text, registers "
    "written\n"
    "  --trace-group X,Y,Z  print only this workgroup's\n"
    "  --trace-wave N       print only this wave's\n"
    "\n"
    "FILE is a code object or an uncompressed clang offload bundle.\n"
    "FLASHATTN_SIM_THREADS sets how many host threads run workgroups.\n"
    "Exit status: 0 done, 1 the kernel or the file is faulty, 2 wrong usage.\n"
    "\n"
    "Example:\n"
    "  flashattn-sim run vadd.co vadd --grid 4 --block 64 --arg file:a.bin --arg file:b.bin \\\n"
    "      --arg out:1024:c.bin --arg i32:256\n";

void print_help(std::FILE* to) {
  std::fprintf(to, "%s%s%s%s", kHelp, kRunHelp, kArgumentHelp, kRunHelpTail);
}

int dispatch_command(const std::string& command, const std::vector<std::string>& words) {
  if (command == "run") return run(words);
  if (command == "info") return info(words);
  if (command == "disasm") return disasm(words);
  if (command == "opcodes") return opcodes(words);
  throw UsageError("unknown command " + command + ", allowed: run, info, disasm, opcodes");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (const std::string& word : words)
    if (word == "--help" || word == "-h") {
      print_help(stdout);
      return 0;
    }
  if (words.empty()) {
    print_help(stderr);
    return 2;
  }
  const std::string command = words.front();
  words.erase(words.begin());
  try {
    return dispatch_command(command, words);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "flashattn-sim %s: %s\n", command.c_str(), error.what());
    return 2;
  } catch (const std::exception& error) {  // SimFault, LoadError
    std::fprintf(stderr, "flashattn-sim %s: %s\n", command.c_str(), error.what());
    return 1;
  }
}
