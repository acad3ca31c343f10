// The package's kernels on one device.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/hip_api.h"

namespace flashattn {

class CodeObject {
 public:
  // The kernels of a family (package.h) on a device of a HIP runtime, loaded by the first call. On
  // a card that device must be the calling thread's current one. Throws when the package holds no
  // code for the device.
  static CodeObject& on(const HipApi& api, int device, const std::string& family = "kernels");

  // A kernel by its symbol; looked up once.
  HipFunction function(std::string_view name);

 private:
  CodeObject(const HipApi& api, HipModule module, std::string path)
      : api_(api), module_(module), path_(std::move(path)) {}

  const HipApi& api_;
  HipModule module_;
  std::string path_;
  std::mutex mutex_;
  std::map<std::string, HipFunction, std::less<>> functions_;
};

// The archs that an offload bundle holds code for, in its order.
std::vector<std::string> bundle_archs(std::string_view bundle);

}  // namespace flashattn
