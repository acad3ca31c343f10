// What host-compiled HIP programs call: registration of their fat binaries, <<<>>> launches,
// symbols.
#include <string>
#include <vector>

#include "hip/abi.h"
#include "hip/api.h"
#include "hip/copy.h"
#include "hip/launch.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

// What stands between <<< and >>>: pushed by the caller, popped by the kernel's host stub.
struct CallConfiguration {
  Dim3 grid, block;
  size_t shared_bytes;
  const void* stream;
};
thread_local std::vector<CallConfiguration> t_configurations;

void launch_host_function(const void* host_function, const CallConfiguration& call, void** args) {
  if (call.shared_bytes > UINT32_MAX)
    fail(hipErrorInvalidValue, "sharedMemBytes=" + std::to_string(call.shared_bytes));
  const auto kernel = Runtime::get().programs.require_kernel(host_function);
  const LaunchShape shape{{call.grid.x, call.grid.y, call.grid.z},
                          {call.block.x, call.block.y, call.block.z},
                          static_cast<uint32_t>(call.shared_bytes)};
  launch(*kernel, {shape, call.stream, args, nullptr});
}

// The part [offset, offset + size) of the device variable behind a host symbol.
char* symbol_part(const void* symbol, size_t offset, size_t size) {
  require(symbol, "symbol");
  const Variable variable = Runtime::get().programs.require_variable(symbol);
  if (offset > variable.size || size > variable.size - offset)
    fail(hipErrorInvalidValue, "offset=" + std::to_string(offset) +
                                   " + size=" + std::to_string(size) + ", the variable has " +
                                   std::to_string(variable.size) + " bytes");
  return reinterpret_cast<char*>(variable.address) + offset;
}

hipError_t to_symbol(const char* function, const void* symbol, const void* src, size_t size,
                     size_t offset, int kind, const void* stream) {
  return api(function, [&] {
    require_stream(stream);
    copy(symbol_part(symbol, offset, size), src, size, kind);
  });
}

hipError_t from_symbol(const char* function, void* dst, const void* symbol, size_t size,
                       size_t offset, int kind, const void* stream) {
  return api(function, [&] {
    require_stream(stream);
    copy(dst, symbol_part(symbol, offset, size), size, kind);
  });
}

}  // namespace

FASIM_API void* __hipRegisterFatBinary(const HostRegistration* registration) {
  return Runtime::get().programs.add_binary(registration);
}

FASIM_API void __hipUnregisterFatBinary(const void* binary) {
  Runtime::get().programs.remove_binary(binary);
}

FASIM_API int __hipRegisterFunction(const void* binary, const void* host_function, const char*,
                                    const char* device_name, unsigned, void*, void*, void*, void*,
                                    int*) {
  Runtime::get().programs.add_function(binary, host_function, device_name);
  return 0;
}

FASIM_API void __hipRegisterVar(const void* binary, const void* host_variable, const char*,
                                const char* device_name, int, size_t, int, int) {
  Runtime::get().programs.add_variable(binary, host_variable, device_name);
}

FASIM_API void __hipRegisterManagedVar(void*, void**, void*, const char* name, size_t, unsigned) {
  log(1, std::string("__managed__ variable ") + name + " is not supported");
}

FASIM_API void __hipRegisterTexture(void*, const void*, const char*, const char* name, int, int,
                                    int) {
  log(1, std::string("texture ") + name + " is not supported");
}

FASIM_API void __hipRegisterSurface(void*, const void*, const char*, const char* name, int, int) {
  log(1, std::string("surface ") + name + " is not supported");
}

FASIM_API hipError_t __hipPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes,
                                                const void* stream) {
  return api(__func__, [&] { t_configurations.push_back({grid, block, shared_bytes, stream}); });
}

FASIM_API hipError_t __hipPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes,
                                               const void** stream) {
  return api(__func__, [&] {
    if (t_configurations.empty())
      fail(hipErrorMissingConfiguration, "no __hipPushCallConfiguration came before");
    const CallConfiguration call = t_configurations.back();
    t_configurations.pop_back();
    *grid = call.grid;
    *block = call.block;
    *shared_bytes = call.shared_bytes;
    *stream = call.stream;
  });
}

FASIM_API hipError_t hipLaunchKernel(const void* host_function, Dim3 grid, Dim3 block, void** args,
                                     size_t shared_bytes, const void* stream) {
  return api(__func__, [&] {
    launch_host_function(host_function, {grid, block, shared_bytes, stream}, args);
  });
}

FASIM_API hipError_t hipExtLaunchKernel(const void* host_function, Dim3 grid, Dim3 block,
                                        void** args, size_t shared_bytes, const void* stream,
                                        const void* start, const void* stop, int) {
  return api(__func__, [&] {
    Runtime& runtime = Runtime::get();
    if (start != nullptr) runtime.events.require(start)->recorded = true;
    launch_host_function(host_function, {grid, block, shared_bytes, stream}, args);
    if (stop != nullptr) runtime.events.require(stop)->recorded = true;
  });
}

FASIM_API hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  return api(__func__, [&] {
    require(pointer, "devPtr");
    *pointer = symbol_part(symbol, 0, 0);
  });
}

FASIM_API hipError_t hipGetSymbolSize(size_t* size, const void* symbol) {
  return api(__func__, [&] {
    require(size, "size");
    *size = Runtime::get().programs.require_variable(symbol).size;
  });
}

FASIM_API hipError_t hipMemcpyToSymbol(const void* symbol, const void* src, size_t size,
                                       size_t offset, int kind) {
  return to_symbol(__func__, symbol, src, size, offset, kind, nullptr);
}

FASIM_API hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* src, size_t size,
                                            size_t offset, int kind, const void* stream) {
  return to_symbol(__func__, symbol, src, size, offset, kind, stream);
}

FASIM_API hipError_t hipMemcpyFromSymbol(void* dst, const void* symbol, size_t size, size_t offset,
                                         int kind) {
  return from_symbol(__func__, dst, symbol, size, offset, kind, nullptr);
}

FASIM_API hipError_t hipMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t size,
                                              size_t offset, int kind, const void* stream) {
  return from_symbol(__func__, dst, symbol, size, offset, kind, stream);
}

}  // namespace fasim::hip
