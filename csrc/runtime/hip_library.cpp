#include "runtime/hip_library.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

#include "runtime/package.h"

namespace flashattn {
namespace {

// Newest first. The name without a number comes last: it is the development link of some version.
constexpr std::array kLibraryNames = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so"};

std::string path_of(void* handle, const std::string& opened_as) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0') {
    return map->l_name;
  }
  return opened_as;
}

// dlopen by name also finds an opened simulator, whose file has a HIP runtime's name.
bool is_simulator(void* handle) { return dlsym(handle, "flashattnSimVersion") != nullptr; }

void* open_first_card_library(int flags) {
  for (const char* name : kLibraryNames) {
    void* handle = dlopen(name, flags);
    if (handle != nullptr && !is_simulator(handle)) return handle;
    if (handle != nullptr) dlclose(handle);
  }
  return nullptr;
}

}  // namespace

HipLibrary open_card_library() {
  void* handle = open_first_card_library(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) handle = open_first_card_library(RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw std::runtime_error(
        "no HIP runtime found: libamdhip64.so.7, .6 and .5 are neither loaded in this process nor "
        "on the loader's path; install ROCm (Debian: libamdhip64-5) or a ROCm build of torch");
  }
  return {handle, path_of(handle, "libamdhip64.so")};
}

HipLibrary open_simulator_library() {
  const std::string path = simulator_path();
  // A fault reaches Python as an exception with its text; the simulator need not print it as well.
  constexpr int keep_if_set = 0;
  setenv("FLASHATTN_SIM_LOG", "0", keep_if_set);
  // RTLD_LOCAL and the full path: a real HIP runtime may be in the same process.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw std::runtime_error(
        "tensors on cpu run on the packaged simulator, which cannot be loaded: " +
        std::string(dlerror()) + "; reinstall flashattn_rocm with the simulator (`make setup`)");
  }
  return {handle, path_of(handle, path)};
}

HipLibrary open_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw std::runtime_error("cannot load HIP runtime " + path + ": " + std::string(dlerror()));
  }
  return {handle, path_of(handle, path)};
}

}  // namespace flashattn
