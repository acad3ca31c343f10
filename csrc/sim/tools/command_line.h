// The arguments of one subcommand: positional words and --name value options.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace fasim::tools {

// A mistake in how the tool was called: main prints it and exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class CommandLine {
 public:
  // Options in `valued` take a value (--name value or --name=value, repeatable), those in `flags`
  // do not. Throws UsageError for an unknown option or a missing value.
  CommandLine(const std::vector<std::string>& words, const std::set<std::string>& valued,
              const std::set<std::string>& flags);

  // The positional words; throws UsageError unless there are as many as `names`.
  std::vector<std::string> positional(const std::vector<std::string>& names) const;
  bool has(const std::string& name) const { return options_.contains(name); }
  // The last value of an option, or `otherwise`.
  std::string value(const std::string& name, const std::string& otherwise) const;
  // All values of an option, in order.
  std::vector<std::string> values(const std::string& name) const;

 private:
  std::vector<std::string> positional_;
  std::map<std::string, std::vector<std::string>> options_;
};

// "8" or "8,1,2" -> three numbers, `missing` for those left out. `option` is for the error text.
std::vector<uint32_t> parse_extent(const std::string& text, const std::string& option,
                                   uint32_t missing = 1);
uint64_t parse_number(const std::string& text, const std::string& option);

}  // namespace fasim::tools
