#include "device/metadata.h"

#include <algorithm>
#include <string_view>

#include "device/load_error.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/BinaryFormat/MsgPackReader.h"

namespace fasim {
namespace {

using llvm::msgpack::DocNode;
using llvm::msgpack::MapDocNode;
using llvm::msgpack::Type;

[[noreturn]] void invalid(const std::string& why) {
  throw LoadError(LoadFailure::invalid_image, "not a usable code object: its metadata note " + why);
}

// LLVM's document ends the process at a map key that is a list or a map, which a damaged file can
// have. Reads one object; false: it has such a key, ends early or is nested as no metadata is.
bool is_readable(llvm::msgpack::Reader& reader, int depth = 0) {
  constexpr int kDeepest = 16;
  llvm::msgpack::Object object;
  llvm::Expected<bool> more = reader.read(object);
  if (!more) llvm::consumeError(more.takeError());
  if (!more || !*more || depth > kDeepest) return false;
  if (object.Kind != Type::Array && object.Kind != Type::Map) return true;
  for (size_t i = 0; i < object.Length; ++i) {
    if (object.Kind == Type::Map) {
      llvm::msgpack::Object key;
      llvm::Expected<bool> found = reader.read(key);
      if (!found) llvm::consumeError(found.takeError());
      if (!found || !*found || key.Kind != Type::String) return false;
    }
    if (!is_readable(reader, depth + 1)) return false;
  }
  return true;
}

const DocNode* find(MapDocNode& map, llvm::StringRef key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

// The writer chooses signed or unsigned encoding by value, so both are read.
uint32_t integer(MapDocNode& map, llvm::StringRef key, uint32_t otherwise) {
  const DocNode* node = find(map, key);
  if (node == nullptr) return otherwise;
  if (node->getKind() == Type::UInt) return static_cast<uint32_t>(node->getUInt());
  if (node->getKind() == Type::Int) return static_cast<uint32_t>(node->getInt());
  invalid("gives no number for " + key.str());
}

uint32_t integer(MapDocNode& map, llvm::StringRef key) {
  if (find(map, key) == nullptr) invalid("lacks " + key.str());
  return integer(map, key, 0);
}

std::string text(MapDocNode& map, llvm::StringRef key) {
  const DocNode* node = find(map, key);
  if (node == nullptr || !node->isString()) invalid("lacks " + key.str());
  return node->getString().str();
}

std::vector<KernelArgument> read_arguments(MapDocNode& kernel) {
  std::vector<KernelArgument> arguments;
  const DocNode* list = find(kernel, ".args");
  if (list == nullptr) return arguments;
  if (!list->isArray()) invalid("has .args that is no list");
  for (DocNode item : const_cast<DocNode*>(list)->getArray()) {
    if (!item.isMap()) invalid("has an argument that is no map");
    MapDocNode& map = item.getMap();
    arguments.push_back({integer(map, ".offset"), integer(map, ".size"), text(map, ".value_kind")});
  }
  return arguments;
}

KernelMetadata read_kernel(MapDocNode& map) {
  KernelMetadata kernel;
  kernel.name = text(map, ".name");
  kernel.symbol = text(map, ".symbol");
  kernel.arguments = read_arguments(map);
  kernel.kernarg_bytes = integer(map, ".kernarg_segment_size");
  kernel.group_segment_bytes = integer(map, ".group_segment_fixed_size");
  kernel.private_segment_bytes = integer(map, ".private_segment_fixed_size");
  kernel.max_group_threads = integer(map, ".max_flat_workgroup_size");
  kernel.wavefront_size = integer(map, ".wavefront_size");
  kernel.sgprs = integer(map, ".sgpr_count");
  kernel.vgprs = integer(map, ".vgpr_count");
  kernel.sgpr_spills = integer(map, ".sgpr_spill_count", 0);
  kernel.vgpr_spills = integer(map, ".vgpr_spill_count", 0);
  const DocNode* dynamic = find(map, ".uses_dynamic_stack");
  kernel.dynamic_stack =
      dynamic != nullptr && dynamic->getKind() == Type::Boolean && dynamic->getBool();
  for (const KernelArgument& argument : kernel.arguments)
    if (uint64_t{argument.offset} + argument.size > kernel.kernarg_bytes)
      invalid("places an argument of " + kernel.name + " behind its kernel arguments' end");
  return kernel;
}

}  // namespace

uint32_t KernelMetadata::explicit_bytes() const {
  uint32_t end = 0;
  for (const KernelArgument& argument : arguments)
    if (!argument.hidden()) end = std::max(end, argument.offset + argument.size);
  return end;
}

std::map<std::string, KernelMetadata> read_metadata(std::span<const uint8_t> msgpack) {
  llvm::msgpack::Document document;
  const llvm::StringRef blob(reinterpret_cast<const char*>(msgpack.data()), msgpack.size());
  llvm::msgpack::Reader reader(blob);
  if (!is_readable(reader) || !document.readFromBlob(blob, /*Multi=*/false))
    invalid("is not msgpack with names as keys");
  if (!document.getRoot().isMap()) invalid("is no map");
  MapDocNode& root = document.getRoot().getMap();
  std::map<std::string, KernelMetadata> kernels;
  const DocNode* list = find(root, "amdhsa.kernels");
  if (list == nullptr) return kernels;  // an object with device variables and no kernels
  if (!list->isArray()) invalid("has amdhsa.kernels that is no list");
  for (DocNode item : const_cast<DocNode*>(list)->getArray()) {
    if (!item.isMap()) invalid("has a kernel that is no map");
    KernelMetadata kernel = read_kernel(item.getMap());
    kernels.emplace(kernel.name, std::move(kernel));
  }
  return kernels;
}

}  // namespace fasim
