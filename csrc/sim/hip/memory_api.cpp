// Allocation, registration and pointer queries.
#include <string>

#include "hip/abi.h"
#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

// hipHostRegister: portable, mapped, I/O memory, coarse and uncached grain. None changes anything
// here.
constexpr unsigned kHostRegisterFlags = 0x8000000f;

hipError_t allocate(const char* function, void** pointer, size_t size, MemoryKind kind,
                    unsigned flags) {
  return api(function, [&] {
    require(pointer, "ptr");
    *pointer = Runtime::get().allocations.allocate(size, kind, flags);
  });
}

hipError_t release(const char* function, void* pointer, MemoryKind kind) {
  return api(function, [&] { Runtime::get().allocations.release(pointer, kind); });
}

// Host memory that the card sees, pinned or registered.
Allocation require_host_allocation(const void* pointer) {
  require(pointer, "hostPtr");
  const auto found = Runtime::get().allocations.find(pointer);
  if (!found || found->kind == MemoryKind::device)
    fail(hipErrorInvalidValue, hex(pointer) + " is neither pinned nor registered host memory");
  return *found;
}

}  // namespace

FASIM_API hipError_t hipMalloc(void** pointer, size_t size) {
  return allocate(__func__, pointer, size, MemoryKind::device, 0);
}

FASIM_API hipError_t hipExtMallocWithFlags(void** pointer, size_t size, unsigned flags) {
  return allocate(__func__, pointer, size, MemoryKind::device, flags);
}

FASIM_API hipError_t hipMallocAsync(void** pointer, size_t size, const void* stream) {
  return api(__func__, [&] {
    require(pointer, "ptr");
    require_stream(stream);
    *pointer = Runtime::get().allocations.allocate(size, MemoryKind::device, 0);
  });
}

FASIM_API hipError_t hipFree(void* pointer) {
  return release(__func__, pointer, MemoryKind::device);
}

FASIM_API hipError_t hipFreeAsync(void* pointer, const void* stream) {
  return api(__func__, [&] {
    require_stream(stream);
    Runtime::get().allocations.release(pointer, MemoryKind::device);
  });
}

FASIM_API hipError_t hipHostMalloc(void** pointer, size_t size, unsigned flags) {
  return allocate(__func__, pointer, size, MemoryKind::pinned_host, flags);
}

FASIM_API hipError_t hipHostAlloc(void** pointer, size_t size, unsigned flags) {
  return allocate(__func__, pointer, size, MemoryKind::pinned_host, flags);
}

FASIM_API hipError_t hipMallocHost(void** pointer, size_t size) {
  return allocate(__func__, pointer, size, MemoryKind::pinned_host, 0);
}

FASIM_API hipError_t hipMemAllocHost(void** pointer, size_t size) {
  return allocate(__func__, pointer, size, MemoryKind::pinned_host, 0);
}

FASIM_API hipError_t hipHostFree(void* pointer) {
  return release(__func__, pointer, MemoryKind::pinned_host);
}

FASIM_API hipError_t hipFreeHost(void* pointer) {
  return release(__func__, pointer, MemoryKind::pinned_host);
}

FASIM_API hipError_t hipHostRegister(void* pointer, size_t size, unsigned flags) {
  return api(__func__, [&] {
    if ((flags & ~kHostRegisterFlags) != 0)
      fail(hipErrorInvalidValue, "flags=" + std::to_string(flags) + " has unknown bits");
    Runtime::get().allocations.register_host(pointer, size, flags, /*read_only=*/false);
  });
}

FASIM_API hipError_t hipHostUnregister(void* pointer) {
  return api(__func__, [&] { Runtime::get().allocations.unregister_host(pointer); });
}

FASIM_API hipError_t hipHostGetDevicePointer(void** device_pointer, void* host_pointer,
                                             unsigned flags) {
  return api(__func__, [&] {
    require(device_pointer, "devPtr");
    if (flags != 0) fail(hipErrorInvalidValue, "flags=" + std::to_string(flags) + ", allowed: 0");
    require_host_allocation(host_pointer);
    *device_pointer = host_pointer;
  });
}

FASIM_API hipError_t hipHostGetFlags(unsigned* flags, void* pointer) {
  return api(__func__, [&] {
    require(flags, "flagsPtr");
    *flags = require_host_allocation(pointer).flags;
  });
}

FASIM_API hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api(__func__, [&] {
    Runtime& runtime = Runtime::get();
    if (free_bytes != nullptr) *free_bytes = runtime.allocations.device_bytes_free();
    if (total_bytes != nullptr) *total_bytes = runtime.device.card().memory_bytes;
  });
}

FASIM_API hipError_t hipMemGetAddressRange(void** base, size_t* size, void* pointer) {
  return api(__func__, [&] {
    const auto range = Runtime::get().device.memory().find(reinterpret_cast<uint64_t>(pointer));
    if (!range) fail(hipErrorNotFound, hex(pointer) + " is not device memory");
    if (base != nullptr) *base = reinterpret_cast<void*>(range->begin);
    if (size != nullptr) *size = range->size();
  });
}

FASIM_API hipError_t hipMemPtrGetInfo(void* pointer, size_t* size) {
  return api(__func__, [&] {
    require(size, "size");
    const auto found = Runtime::get().allocations.find(pointer);
    if (!found) fail(hipErrorInvalidValue, hex(pointer) + " is not in a live allocation");
    *size = found->size;
  });
}

FASIM_API hipError_t hipPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  return api(__func__, [&] {
    require(attributes, "attributes");
    *attributes = {};
    auto* const same = const_cast<void*>(pointer);
    Runtime& runtime = Runtime::get();
    if (const auto found = runtime.allocations.find(pointer)) {
      const bool on_card = found->kind == MemoryKind::device;
      attributes->type = on_card ? kMemoryDevice : kMemoryHost;
      attributes->device_pointer = same;
      attributes->host_pointer = on_card ? nullptr : same;
      attributes->allocation_flags = found->flags;
    } else if (runtime.device.memory().find(reinterpret_cast<uint64_t>(pointer))) {
      attributes->type = kMemoryDevice;  // a variable of a module
      attributes->device_pointer = same;
    } else {
      fail(hipErrorInvalidValue, hex(pointer) + " is memory that HIP does not know");
    }
  });
}

}  // namespace fasim::hip
