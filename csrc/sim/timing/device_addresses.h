// Where the timing model takes memory to be.
//
// The simulated card computes with host addresses, which differ from process to process. Caches and
// channels see these instead: each range of memory lies on pages of its own, behind the range that
// the launch touched before it. So the same launch takes the same time in every process.
#pragma once

#include <cstdint>
#include <map>

#include "mem/address_space.h"

namespace fasim {

class DeviceAddresses {
 public:
  explicit DeviceAddresses(const AddressSpace& memory) : memory_(memory) {}

  // Gives `bytes` of host memory that the address space does not hold (scratch) their place.
  void place(uint64_t begin, uint64_t bytes);

  // An address outside of all ranges stays as it is: an aperture, or a fault about to be raised.
  uint64_t operator()(uint64_t host) {
    if (host - last_.begin >= last_.bytes && !look_up(host)) return host;
    return host - last_.begin + last_.device;
  }

 private:
  struct Range {
    uint64_t begin = 0, bytes = 0;  // of the host
    uint64_t device = 0;
  };

  bool look_up(uint64_t host);

  const AddressSpace& memory_;
  std::map<uint64_t, Range> ranges_;  // keyed by Range::begin
  Range last_;
  uint64_t end_ = 0;  // of the device memory that is taken
};

}  // namespace fasim
