// The subcommands. Each takes the words behind its name and returns the exit status.
#pragma once

#include <string>
#include <vector>

namespace fasim::tools {

extern const char* const kRunHelp;

int run(const std::vector<std::string>& words);
int info(const std::vector<std::string>& words);
int disasm(const std::vector<std::string>& words);
int opcodes(const std::vector<std::string>& words);

}  // namespace fasim::tools
