// Kernels and variables of HIP programs compiled for the host: their object files hand over a fat
// binary and the host-side addresses that stand for device functions and variables.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/code_object.h"
#include "hip/abi.h"
#include "hip/modules.h"

namespace fasim::hip {

class RegisteredPrograms {
 public:
  explicit RegisteredPrograms(Modules& modules) : modules_(modules) {}

  // Called from static constructors: only notes what exists. The code object is loaded at the first
  // use, because a program may carry fat binaries that it never uses and that hold nothing for us.
  void* add_binary(const HostRegistration* registration);
  void remove_binary(const void* binary);
  void add_function(const void* binary, const void* host, const char* device_name);
  void add_variable(const void* binary, const void* host, const char* device_name);

  std::shared_ptr<const Kernel> require_kernel(const void* host);
  Variable require_variable(const void* host);

 private:
  struct Binary {
    const HostRegistration* registration = nullptr;
    std::shared_ptr<CodeObject> module;  // null until the first use
  };
  struct Symbol {
    const void* binary;
    std::string name;
  };

  // mutex_ is held.
  CodeObject& loaded(const Symbol& symbol);

  Modules& modules_;
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<Binary>> binaries_;
  std::map<const void*, Symbol> functions_, variables_;  // keyed by host address
};

}  // namespace fasim::hip
