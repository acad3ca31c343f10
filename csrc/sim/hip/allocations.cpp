#include "hip/allocations.h"

#include <cstdio>
#include <string>

#include "hip/api.h"

namespace fasim::hip {
namespace {

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

const char* name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "hipMalloc";
    case MemoryKind::pinned_host:
      return "hipHostMalloc";
    case MemoryKind::registered_host:
      return "hipHostRegister";
  }
  return "";
}

}  // namespace

void* Allocations::allocate(size_t size, MemoryKind kind, unsigned flags) {
  if (size == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const bool on_card = kind == MemoryKind::device;
  if (on_card && size > device_bytes_ - device_in_use_)
    fail(hipErrorOutOfMemory, "size=" + std::to_string(size) + " bytes, free on the device: " +
                                  std::to_string(device_bytes_ - device_in_use_));
  void* pointer = memory_.allocate(size, name(kind));
  if (pointer == nullptr)
    fail(hipErrorOutOfMemory,
         "size=" + std::to_string(size) + " bytes: the host of the simulation has not that much");
  entries_[address_of(pointer)] = {address_of(pointer), size, kind, flags};
  if (on_card) device_in_use_ += size;
  return pointer;
}

void Allocations::release(void* pointer, MemoryKind kind) {
  if (pointer == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(address_of(pointer));
  if (it == entries_.end())
    fail(hipErrorInvalidValue, "pointer " + hex(pointer) +
                                   " is not the start of a live allocation (freed already?): " +
                                   memory_.describe(address_of(pointer)));
  if (it->second.kind != kind)
    fail(hipErrorInvalidValue, "pointer " + hex(pointer) + " comes from " + name(it->second.kind) +
                                   ", not " + name(kind));
  if (kind == MemoryKind::device) device_in_use_ -= it->second.size;
  memory_.release(pointer,
                  kind == MemoryKind::device ? "freed by hipFree" : "freed by hipHostFree");
  entries_.erase(it);
}

void Allocations::register_host(void* pointer, size_t size, unsigned flags, bool read_only) {
  require(pointer, "hostPtr");
  if (size == 0) fail(hipErrorInvalidValue, "sizeBytes=0, allowed: 1 or more");
  const std::lock_guard lock(mutex_);
  if (!memory_.register_range(pointer, size, read_only))
    fail(hipErrorHostMemoryAlreadyRegistered,
         hex(pointer) + " + " + std::to_string(size) +
             " bytes overlaps memory that the device sees already: " +
             memory_.describe(address_of(pointer)));
  entries_[address_of(pointer)] = {address_of(pointer), size, MemoryKind::registered_host, flags};
}

void Allocations::unregister_host(void* pointer) {
  require(pointer, "hostPtr");
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(address_of(pointer));
  if (it == entries_.end() || it->second.kind != MemoryKind::registered_host)
    fail(hipErrorHostMemoryNotRegistered, hex(pointer) + " is not the start of a registered range");
  memory_.unregister_range(pointer);
  entries_.erase(it);
}

std::optional<Allocation> Allocations::find(const void* pointer) const {
  const std::lock_guard lock(mutex_);
  auto it = entries_.upper_bound(address_of(pointer));
  if (it == entries_.begin()) return std::nullopt;
  const Allocation& allocation = (--it)->second;
  if (address_of(pointer) - allocation.begin >= allocation.size) return std::nullopt;
  return allocation;
}

uint64_t Allocations::device_bytes_free() const {
  const std::lock_guard lock(mutex_);
  return device_bytes_ - device_in_use_;
}

void Allocations::release_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, allocation] : entries_) {
    void* pointer = reinterpret_cast<void*>(begin);
    if (allocation.kind == MemoryKind::registered_host)
      memory_.unregister_range(pointer);
    else
      memory_.release(pointer);
  }
  entries_.clear();
  device_in_use_ = 0;
}

void require_on_device(const AddressSpace& memory, const void* pointer, size_t size,
                       const char* argument) {
  require(pointer, argument);
  const uint64_t address = address_of(pointer);
  const std::optional<AddressSpace::Range> range = memory.find(address);
  if (!range)
    fail(hipErrorInvalidValue, std::string(argument) + "=" + hex(pointer) +
                                   " is not device memory: " + memory.describe(address));
  if (size > range->end - address)
    fail(hipErrorInvalidValue,
         std::string(argument) + "=" + hex(pointer) + ", size " + std::to_string(size) + ": only " +
             std::to_string(range->end - address) + " bytes are left in the allocation of " +
             std::to_string(range->size()) + " bytes");
}

std::string hex(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

}  // namespace fasim::hip
