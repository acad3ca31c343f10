// Host memory that a launch on the simulator may touch: exactly the bytes of its tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/hip_api.h"

namespace flashattn {

struct ByteRange {
  std::byte* begin;
  std::byte* end;
};

// Overlapping ranges become one (packed q, k, v interleave in one buffer); touching ones stay
// apart, so that an access that runs from one tensor into its neighbour is still a fault.
// Empty ranges vanish.
std::vector<ByteRange> merge_overlapping(std::vector<ByteRange> ranges);

// What one launch touches. No input overlaps an output.
struct TouchedMemory {
  std::vector<ByteRange> inputs;   // the kernel may only read these
  std::vector<ByteRange> outputs;  // interleaved ones (the halves of one cache) become one
};

// Makes host memory visible to the simulator for its own lifetime.
class HostRegistration {
 public:
  HostRegistration(const HipApi& simulator, const TouchedMemory& touched);
  ~HostRegistration();
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;

 private:
  enum class Access { read, write };
  void register_range(const ByteRange& range, Access access);
  void unregister_all() noexcept;

  const HipApi& simulator_;
  std::vector<std::byte*> registered_;
};

}  // namespace flashattn
