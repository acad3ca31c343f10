#include "hip/modules.h"

#include "hip/allocations.h"
#include "hip/api.h"

namespace fasim::hip {

std::shared_ptr<CodeObject> Modules::load(std::span<const uint8_t> image) {
  auto module = std::make_shared<CodeObject>(image, device_.card(), device_.memory());
  const std::lock_guard lock(mutex_);
  modules_[module.get()] = module;
  for (const auto& [name, kernel] : module->kernels()) module_of_[&kernel] = module.get();
  return module;
}

void Modules::unload(const void* handle) {
  const std::shared_ptr<CodeObject> module = require_module(handle);
  const std::lock_guard lock(mutex_);
  for (const auto& [name, kernel] : module->kernels()) module_of_.erase(&kernel);
  modules_.erase(handle);
}

std::shared_ptr<CodeObject> Modules::require_module(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto it = modules_.find(handle);
  if (it == modules_.end())
    fail(hipErrorInvalidHandle, "module " + hex(handle) + " is not a loaded module");
  return it->second;
}

std::shared_ptr<const Kernel> Modules::require_function(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto it = module_of_.find(handle);
  if (it == module_of_.end())
    fail(hipErrorInvalidHandle,
         "function " + hex(handle) + " is not a function of a loaded module");
  return {modules_.at(it->second), static_cast<const Kernel*>(handle)};
}

}  // namespace fasim::hip
