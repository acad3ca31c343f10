#include "tools/command_line.h"

#include <algorithm>
#include <charconv>

namespace fasim::tools {

CommandLine::CommandLine(const std::vector<std::string>& words, const std::set<std::string>& valued,
                         const std::set<std::string>& flags) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      positional_.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (flags.contains(name) && equals == std::string::npos) {
      options_[name];
    } else if (!valued.contains(name)) {
      throw UsageError("unknown option " + word);
    } else if (equals != std::string::npos) {
      options_[name].push_back(word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      options_[name].push_back(words[++i]);
    } else {
      throw UsageError(name + " needs a value");
    }
  }
}

std::vector<std::string> CommandLine::positional(const std::vector<std::string>& names) const {
  if (positional_.size() > names.size())
    throw UsageError("unexpected: " + positional_[names.size()]);
  if (positional_.size() < names.size())
    throw UsageError(names[positional_.size()] + " is missing");
  return positional_;
}

std::string CommandLine::value(const std::string& name, const std::string& otherwise) const {
  const auto it = options_.find(name);
  return it == options_.end() ? otherwise : it->second.back();
}

std::vector<std::string> CommandLine::values(const std::string& name) const {
  const auto it = options_.find(name);
  return it == options_.end() ? std::vector<std::string>{} : it->second;
}

uint64_t parse_number(const std::string& text, const std::string& option) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end)
    throw UsageError(option + " " + text + " is not a number of 0 or more");
  return number;
}

std::vector<uint32_t> parse_extent(const std::string& text, const std::string& option,
                                   uint32_t missing) {
  std::vector<uint32_t> extent;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const uint64_t number = parse_number(text.substr(begin, comma - begin), option);
    if (number > UINT32_MAX) throw UsageError(option + " " + text + " is too large");
    extent.push_back(static_cast<uint32_t>(number));
    begin = comma + 1;
  }
  if (extent.size() > 3) throw UsageError(option + " " + text + " has more than three numbers");
  extent.resize(3, missing);
  return extent;
}

}  // namespace fasim::tools
