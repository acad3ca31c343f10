#include "hip/registered.h"

#include "device/bundle.h"
#include "hip/allocations.h"
#include "hip/api.h"

namespace fasim::hip {

void* RegisteredPrograms::add_binary(const HostRegistration* registration) {
  const std::lock_guard lock(mutex_);
  auto binary = std::make_unique<Binary>();
  binary->registration = registration;
  void* const handle = binary.get();
  binaries_[handle] = std::move(binary);
  return handle;
}

void RegisteredPrograms::remove_binary(const void* binary) {
  const std::lock_guard lock(mutex_);
  const auto it = binaries_.find(binary);
  if (it == binaries_.end()) return;
  std::erase_if(functions_, [&](const auto& entry) { return entry.second.binary == binary; });
  std::erase_if(variables_, [&](const auto& entry) { return entry.second.binary == binary; });
  if (it->second->module) modules_.unload(it->second->module.get());
  binaries_.erase(it);
}

void RegisteredPrograms::add_function(const void* binary, const void* host, const char* name) {
  const std::lock_guard lock(mutex_);
  functions_[host] = {binary, name};
}

void RegisteredPrograms::add_variable(const void* binary, const void* host, const char* name) {
  const std::lock_guard lock(mutex_);
  variables_[host] = {binary, name};
}

CodeObject& RegisteredPrograms::loaded(const Symbol& symbol) {
  const auto it = binaries_.find(symbol.binary);
  if (it == binaries_.end()) fail(hipErrorInvalidImage, symbol.name + " has no fat binary");
  Binary& binary = *it->second;
  if (!binary.module) {
    if (binary.registration->magic != kHostRegistrationMagic)
      fail(hipErrorInvalidImage, "the fat binary of " + symbol.name + " has a wrong magic number");
    const auto* image = static_cast<const uint8_t*>(binary.registration->image);
    binary.module = modules_.load({image, image_size(image)});
  }
  return *binary.module;
}

std::shared_ptr<const Kernel> RegisteredPrograms::require_kernel(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto it = functions_.find(host);
  if (it == functions_.end())
    fail(hipErrorInvalidDeviceFunction,
         "function address " + hex(host) + " was not registered as a __global__ function");
  const Kernel* kernel = loaded(it->second).kernel(it->second.name);
  if (kernel == nullptr)
    fail(hipErrorInvalidDeviceFunction, "the code object has no kernel " + it->second.name);
  return modules_.require_function(kernel);
}

Variable RegisteredPrograms::require_variable(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto it = variables_.find(host);
  if (it == variables_.end())
    fail(hipErrorInvalidSymbol,
         "symbol address " + hex(host) + " was not registered as a __device__ variable");
  const std::optional<Variable> variable = loaded(it->second).variable(it->second.name);
  if (!variable) fail(hipErrorInvalidSymbol, "the code object has no variable " + it->second.name);
  return *variable;
}

}  // namespace fasim::hip
