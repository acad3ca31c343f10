#include "tools/kernel_arguments.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tools/command_line.h"

namespace fasim::tools {
namespace {

template <typename T>
std::vector<uint8_t> number(const std::string& text, const std::string& spec) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end)
    throw UsageError("--arg " + spec + ": " + text + " is no value of that type");
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::vector<uint8_t> pointer(const void* address) {
  std::vector<uint8_t> bytes(sizeof(address));
  std::memcpy(bytes.data(), &address, sizeof(address));
  return bytes;
}

using NumberReader = std::vector<uint8_t> (*)(const std::string&, const std::string&);
struct NumberType {
  const char* name;
  NumberReader read;
};
constexpr NumberType kNumberTypes[] = {
    {"i8", number<int8_t>},    {"i16", number<int16_t>},  {"i32", number<int32_t>},
    {"i64", number<int64_t>},  {"u8", number<uint8_t>},   {"u16", number<uint16_t>},
    {"u32", number<uint32_t>}, {"u64", number<uint64_t>}, {"f32", number<float>},
    {"f64", number<double>},
};

}  // namespace

KernelArguments::~KernelArguments() {
  for (void* buffer : buffers_) memory_.release(buffer);
}

uint8_t* KernelArguments::buffer(size_t size, const std::string& spec) {
  auto* const data = static_cast<uint8_t*>(memory_.allocate(size, spec.c_str()));
  if (data == nullptr) throw UsageError("--arg " + spec + ": no memory for it");
  buffers_.push_back(data);
  std::memset(data, 0, size);
  return data;
}

std::vector<uint8_t> KernelArguments::structure(const std::string& spec) {
  std::vector<uint8_t> bytes;
  size_t alignment = 1;
  for (size_t begin = 1; begin < spec.size();) {
    const size_t end = std::min(spec.find(',', begin), spec.size() - 1);
    const std::vector<uint8_t> member = value(spec.substr(begin, end - begin));
    alignment = std::max(alignment, member.size());
    bytes.resize((bytes.size() + member.size() - 1) / member.size() * member.size());
    bytes.insert(bytes.end(), member.begin(), member.end());
    begin = end + 1;
  }
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes;
}

std::vector<uint8_t> KernelArguments::value(const std::string& spec) {
  const size_t colon = spec.find(':');
  if (colon == std::string::npos) throw UsageError("--arg " + spec + " has no ':'");
  const std::string type = spec.substr(0, colon), rest = spec.substr(colon + 1);
  if (type == "zeros") return pointer(buffer(parse_number(rest, "--arg zeros:"), spec));
  if (type == "file") {
    const std::vector<uint8_t> content = read_file(rest);
    uint8_t* const data = buffer(content.size(), spec);
    std::memcpy(data, content.data(), content.size());
    return pointer(data);
  }
  if (type == "out") {
    const size_t second = rest.find(':');
    if (second == std::string::npos) throw UsageError("--arg " + spec + ": out:N:PATH is needed");
    const size_t size = parse_number(rest.substr(0, second), "--arg out:");
    uint8_t* const data = buffer(size, spec);
    outputs_.push_back({data, size, rest.substr(second + 1)});
    return pointer(data);
  }
  for (const NumberType& candidate : kNumberTypes)
    if (type == candidate.name) return candidate.read(rest, spec);
  throw UsageError("--arg " + spec + ": unknown type " + type);
}

std::vector<uint8_t> KernelArguments::pack(const std::vector<std::string>& specs,
                                           const KernelMetadata& kernel) {
  std::vector<uint8_t> bytes(kernel.explicit_bytes(), 0);
  size_t index = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.hidden()) continue;
    const std::string which = "argument " + std::to_string(index) + " of " + kernel.name;
    if (index >= specs.size()) throw UsageError(which + " is missing (--arg)");
    const std::string& spec = specs[index++];
    const std::vector<uint8_t> packed =
        spec.starts_with('{') && spec.ends_with('}') ? structure(spec) : value(spec);
    if (packed.size() != argument.size)
      throw UsageError(which + " has " + std::to_string(argument.size) + " bytes (" +
                       argument.value_kind + "), --arg " + spec + " has " +
                       std::to_string(packed.size()));
    std::memcpy(bytes.data() + argument.offset, packed.data(), packed.size());
  }
  if (index < specs.size())
    throw UsageError(kernel.name + " takes " + std::to_string(index) + " arguments, " +
                     std::to_string(specs.size()) + " are given");
  return bytes;
}

void KernelArguments::write_outputs() const {
  for (const Output& output : outputs_) {
    std::ofstream file(output.path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(output.data),
               static_cast<std::streamsize>(output.size));
    if (!file) throw UsageError("cannot write " + output.path);
  }
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace fasim::tools
