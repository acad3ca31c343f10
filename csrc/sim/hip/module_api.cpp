// Modules, the functions and variables in them, and function attributes.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "device/bundle.h"
#include "hip/abi.h"
#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

std::vector<uint8_t> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(hipErrorFileNotFound, std::string("cannot open ") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

hipError_t load_image(const char* function, CodeObject** module, const void* image) {
  return api(function, [&] {
    require(module, "module");
    require(image, "image");
    const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(image), image_size(image));
    *module = Runtime::get().modules.load(bytes).get();
  });
}

std::string names(const CodeObject& module) {
  std::string list;
  for (const auto& [name, kernel] : module.kernels()) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

int attribute(const Kernel& kernel, int number) {
  const KernelMetadata& metadata = kernel.metadata;
  const Card& card = Runtime::get().device.card();
  switch (number) {
    case kMaxThreadsPerBlock:
      return static_cast<int>(metadata.max_group_threads);
    case kSharedSizeBytes:
      return static_cast<int>(metadata.group_segment_bytes);
    case kLocalSizeBytes:
      return static_cast<int>(metadata.private_segment_bytes);
    case kNumRegs:
      return static_cast<int>(metadata.vgprs);
    case kMaxDynamicSharedSizeBytes:
      return static_cast<int>(card.lds_bytes - metadata.group_segment_bytes);
    // Constants live in ordinary memory, there is no PTX and no L1/LDS split on AMD GPUs.
    case kConstSizeBytes:
    case kPtxVersion:
    case kBinaryVersion:
    case kCacheModeCa:
    case kPreferredSharedMemoryCarveout:
      return 0;
    default:
      fail(hipErrorInvalidValue, "attrib=" + std::to_string(number) + ", allowed: 0 to 9");
  }
}

}  // namespace

FASIM_API hipError_t hipModuleLoad(CodeObject** module, const char* path) {
  return api(__func__, [&] {
    require(module, "module");
    require(path, "fname");
    *module = Runtime::get().modules.load(read_file(path)).get();
  });
}

FASIM_API hipError_t hipModuleLoadData(CodeObject** module, const void* image) {
  return load_image(__func__, module, image);
}

// The options are for the NVIDIA JIT; AMD's runtime ignores them too.
FASIM_API hipError_t hipModuleLoadDataEx(CodeObject** module, const void* image, unsigned, int*,
                                         void**) {
  return load_image(__func__, module, image);
}

FASIM_API hipError_t hipModuleLoadFatBinary(CodeObject** module, const void* image) {
  return load_image(__func__, module, image);
}

FASIM_API hipError_t hipModuleUnload(const CodeObject* module) {
  return api(__func__, [&] { Runtime::get().modules.unload(module); });
}

FASIM_API hipError_t hipModuleGetFunction(const Kernel** function, const CodeObject* module,
                                          const char* name) {
  return api(__func__, [&] {
    require(function, "function");
    require(name, "kname");
    const auto owner = Runtime::get().modules.require_module(module);
    *function = owner->kernel(name);
    if (*function == nullptr)
      fail(hipErrorNotFound,
           std::string("no kernel ") + name + "; the module has: " + names(*owner));
  });
}

FASIM_API hipError_t hipModuleGetFunctionCount(unsigned* count, const CodeObject* module) {
  return api(__func__, [&] {
    require(count, "count");
    const auto owner = Runtime::get().modules.require_module(module);
    *count = static_cast<unsigned>(owner->kernels().size());
  });
}

FASIM_API hipError_t hipModuleGetGlobal(void** pointer, size_t* size, const CodeObject* module,
                                        const char* name) {
  return api(__func__, [&] {
    require(name, "name");
    const auto owner = Runtime::get().modules.require_module(module);
    const auto variable = owner->variable(name);
    if (!variable) fail(hipErrorNotFound, std::string("the module has no variable ") + name);
    if (pointer != nullptr) *pointer = reinterpret_cast<void*>(variable->address);
    if (size != nullptr) *size = variable->size;
  });
}

FASIM_API hipError_t hipFuncGetAttribute(int* value, int number, const Kernel* function) {
  return api(__func__, [&] {
    require(value, "value");
    *value = attribute(*Runtime::get().modules.require_function(function), number);
  });
}

FASIM_API hipError_t hipFuncGetAttributes(FuncAttributes* attributes, const void* host_function) {
  return api(__func__, [&] {
    require(attributes, "attr");
    const auto kernel = Runtime::get().programs.require_kernel(host_function);
    *attributes = {};
    attributes->local_size_bytes = kernel->metadata.private_segment_bytes;
    attributes->shared_size_bytes = kernel->metadata.group_segment_bytes;
    attributes->max_dynamic_shared_size_bytes = attribute(*kernel, kMaxDynamicSharedSizeBytes);
    attributes->max_threads_per_block = attribute(*kernel, kMaxThreadsPerBlock);
    attributes->num_regs = attribute(*kernel, kNumRegs);
  });
}

// Dynamic LDS needs no permission on AMD GPUs: what fits is allowed at the launch.
FASIM_API hipError_t hipFuncSetAttribute(const void* host_function, int number, int value) {
  return api(__func__, [&] {
    const auto kernel = Runtime::get().programs.require_kernel(host_function);
    const int most = attribute(*kernel, kMaxDynamicSharedSizeBytes);
    if (number == kMaxDynamicSharedSizeBytes && (value < 0 || value > most))
      fail(hipErrorInvalidValue, "MaxDynamicSharedMemorySize=" + std::to_string(value) +
                                     ", allowed: 0 to " + std::to_string(most));
  });
}

FASIM_API hipError_t hipGetFuncBySymbol(const Kernel** function, const void* host_function) {
  return api(__func__, [&] {
    require(function, "functionPtr");
    *function = Runtime::get().programs.require_kernel(host_function).get();
  });
}

FASIM_API const char* hipKernelNameRef(const Kernel* function) {
  const char* name = nullptr;
  const hipError_t error = api(__func__, [&] {
    name = Runtime::get().modules.require_function(function)->metadata.name.c_str();
  });
  return error == hipSuccess ? name : nullptr;
}

}  // namespace fasim::hip
