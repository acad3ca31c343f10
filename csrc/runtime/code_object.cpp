#include "runtime/code_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "runtime/package.h"

namespace flashattn {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kDeviceIdPrefix = "hipv4-amdgcn-amd-amdhsa--";

uint64_t read_u64(std::string_view bytes, size_t offset) {
  if (bytes.size() < 8 || offset > bytes.size() - 8) {
    throw std::runtime_error("offload bundle ends inside its entry table");
  }
  uint64_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The bundle stays mapped: HIP may read code objects from it as long as the process lives, and a
// mapping is page-aligned as HIP wants it.
std::string_view map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0 || status.st_size == 0) {
    const std::string reason = file < 0 ? std::strerror(errno) : "it is empty";
    if (file >= 0) close(file);
    throw std::runtime_error("cannot read the kernels " + path + ": " + reason +
                             "; reinstall flashattn_rocm");
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (data == MAP_FAILED) {
    throw std::runtime_error("cannot map the kernels " + path + ": " + std::strerror(error));
  }
  return {static_cast<const char*>(data), size};
}

std::string no_binary_text(std::string_view bundle, const std::string& arch) {
  std::string held;
  for (const std::string& each : bundle_archs(bundle)) {
    held += (held.empty() ? "" : ", ") + each;
  }
  const std::string plain = arch.substr(0, arch.find(':'));
  return "this build of flashattn_rocm holds no kernels for " + arch + ", only for " + held +
         "; to build for this device: PYTORCH_ROCM_ARCH=" + plain +
         " pip install --no-build-isolation .";
}

HipModule load_kernels(const HipApi& api, int device, const std::string& path) {
  const std::string_view bundle = map_file(path);
  HipModule module = nullptr;
  const HipStatus status = api.module_load_data(&module, bundle.data());
  if (status == kHipErrorNoBinaryForGpu) {
    throw HipError(status, no_binary_text(bundle, api.device_info(device).arch));
  }
  api.check(status, "hipModuleLoadData",
            "loading " + path + " on device " + std::to_string(device));
  return module;
}

}  // namespace

CodeObject& CodeObject::on(const HipApi& api, int device, const std::string& family) {
  using Key = std::tuple<const HipApi*, int, std::string>;
  // Never destroyed: the HIP runtime may be torn down before our statics, and it frees its modules.
  static auto& loaded = *new std::map<Key, std::unique_ptr<CodeObject>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::unique_ptr<CodeObject>& entry = loaded[Key{&api, device, family}];
  if (entry == nullptr) {
    const std::string path = kernels_path(family);
    entry.reset(new CodeObject(api, load_kernels(api, device, path), path));
  }
  return *entry;
}

HipFunction CodeObject::function(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  const std::string symbol(name);
  HipFunction function = nullptr;
  api_.check(api_.module_get_function(&function, module_, symbol.c_str()), "hipModuleGetFunction",
             "looking for kernel " + symbol + " in " + path_);
  functions_.emplace(symbol, function);
  return function;
}

std::vector<std::string> bundle_archs(std::string_view bundle) {
  if (!bundle.starts_with(kBundleMagic)) {
    throw std::runtime_error("the kernels are no offload bundle: they do not start with " +
                             std::string(kBundleMagic));
  }
  std::vector<std::string> archs;
  size_t at = kBundleMagic.size();
  const uint64_t entries = read_u64(bundle, at);
  at += 8;
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t id_length = read_u64(bundle, at + 16);  // after the entry's offset and size
    at += 24;
    if (id_length > bundle.size() - at) {
      throw std::runtime_error("offload bundle ends inside the name of entry " + std::to_string(i));
    }
    const std::string_view id = bundle.substr(at, id_length);
    at += id_length;
    if (id.starts_with(kDeviceIdPrefix)) archs.emplace_back(id.substr(kDeviceIdPrefix.size()));
  }
  return archs;
}

}  // namespace flashattn
