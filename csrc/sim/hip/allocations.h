// The memory that HIP calls have made visible to the card, with what kind each piece is.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "mem/address_space.h"

namespace fasim::hip {

enum class MemoryKind { device, pinned_host, registered_host };

struct Allocation {
  uint64_t begin = 0;
  size_t size = 0;
  MemoryKind kind = MemoryKind::device;
  unsigned flags = 0;
};

class Allocations {
 public:
  Allocations(AddressSpace& memory, uint64_t device_bytes)
      : memory_(memory), device_bytes_(device_bytes) {}

  // Null for a size of 0. Throws ApiFailure(hipErrorOutOfMemory) when the card, or the host behind
  // it, has no room.
  void* allocate(size_t size, MemoryKind kind, unsigned flags);
  // Throws ApiFailure(hipErrorInvalidValue) unless `pointer` came from allocate() with that kind.
  void release(void* pointer, MemoryKind kind);

  // The card may not write to a read-only range.
  void register_host(void* pointer, size_t size, unsigned flags, bool read_only);
  void unregister_host(void* pointer);

  // The allocation that `pointer` lies in.
  std::optional<Allocation> find(const void* pointer) const;
  uint64_t device_bytes_free() const;

  // hipMalloc memory and pinned memory are released, registrations end (hipDeviceReset).
  void release_all();

 private:
  AddressSpace& memory_;
  const uint64_t device_bytes_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> entries_;  // keyed by Allocation::begin
  uint64_t device_in_use_ = 0;
};

// Throws ApiFailure(hipErrorInvalidValue) unless the card may touch all of pointer[0 .. size).
void require_on_device(const AddressSpace& memory, const void* pointer, size_t size,
                       const char* argument);

std::string hex(const void* pointer);

}  // namespace fasim::hip
