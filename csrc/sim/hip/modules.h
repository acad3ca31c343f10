// Loaded modules and the kernels in them, as handles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "device/code_object.h"
#include "device/device.h"

namespace fasim::hip {

// A hipModule_t is the address of the CodeObject, a hipFunction_t that of the Kernel. Lookups give
// shared ownership, so that unloading a module during a launch on another thread is harmless.
class Modules {
 public:
  explicit Modules(Device& device) : device_(device) {}

  std::shared_ptr<CodeObject> load(std::span<const uint8_t> image);
  void unload(const void* handle);

  // Throw ApiFailure(hipErrorInvalidHandle) for a handle that is not live.
  std::shared_ptr<CodeObject> require_module(const void* handle) const;
  std::shared_ptr<const Kernel> require_function(const void* handle) const;

 private:
  Device& device_;
  mutable std::mutex mutex_;
  std::map<const void*, std::shared_ptr<CodeObject>> modules_;
  std::map<const void*, const void*> module_of_;  // hipFunction_t -> hipModule_t
};

}  // namespace fasim::hip
