#include "runtime/package.h"

#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace flashattn {
namespace {

std::string find_package_dir() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&package_dir), &info) == 0 ||
      info.dli_fname == nullptr) {
    throw std::runtime_error("dladdr does not know the file of the flashattn_rocm extension");
  }
  return std::filesystem::absolute(info.dli_fname).parent_path().string();
}

}  // namespace

const std::string& package_dir() {
  static const std::string dir = find_package_dir();
  return dir;
}

std::string kernels_path(const std::string& family) {
  return package_dir() + "/lib/" + family + ".hipfb";
}

std::string simulator_path() { return package_dir() + "/lib/sim/libamdhip64.so"; }

}  // namespace flashattn
