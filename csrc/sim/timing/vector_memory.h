// The vector memory path of one CU in time: address units, L1, and what lies behind it.
#pragma once

#include <cstdint>

#include "exec/wave.h"
#include "timing/cache.h"
#include "timing/card_timing.h"
#include "timing/device_addresses.h"
#include "timing/inst_timing.h"
#include "timing/memory_system.h"

namespace fasim {

class VectorMemory {
 public:
  VectorMemory(const CardTiming& card, MemorySystem& memory, DeviceAddresses& addresses)
      : card_(card),
        memory_(memory),
        addresses_(addresses),
        l1_(card.l1_bytes, card.l1_ways, card.line_bytes) {}

  // The clock from which the address units take an instruction.
  uint64_t takes_from() const;
  // Sends the wave's next instruction at `t`, before it runs; returns when a load's data is back,
  // or L2 has a store's.
  uint64_t send(Wave& wave, const InstTiming& timing, uint64_t t);

  uint64_t requests() const { return requests_; }  // lines of loads
  uint64_t hits() const { return hits_; }
  uint64_t stalled_clocks() const { return stalled_clocks_; }  // waiting for address units

 private:
  double load(uint64_t line, bool bypass_l1, double sent);
  double update(uint64_t line, uint32_t bytes, bool is_atomic, double sent);

  const CardTiming& card_;
  MemorySystem& memory_;
  DeviceAddresses& addresses_;
  Cache l1_;
  uint64_t address_free_ = 0;
  double fill_free_ = 0;
  uint64_t requests_ = 0, hits_ = 0, stalled_clocks_ = 0;
};

// The scalar cache, as one CU sees it.
class ScalarMemory {
 public:
  ScalarMemory(const CardTiming& card, MemorySystem& memory, DeviceAddresses& addresses)
      : card_(card),
        memory_(memory),
        addresses_(addresses),
        cache_(card.scalar_cache_bytes, 4, card.line_bytes) {}

  // As VectorMemory::send.
  uint64_t send(const Wave& wave, const InstTiming& timing, uint64_t t);

 private:
  const CardTiming& card_;
  MemorySystem& memory_;
  DeviceAddresses& addresses_;
  Cache cache_;
};

}  // namespace fasim
