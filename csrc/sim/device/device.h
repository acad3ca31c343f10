// The simulated card: its memory, and the launch of a kernel on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "device/card.h"
#include "device/code_object.h"
#include "device/kernarg.h"
#include "exec/launch.h"
#include "mem/address_space.h"

namespace fasim {

class Device {
 public:
  explicit Device(const Card& card) : card_(card) {}

  const Card& card() const { return card_; }
  AddressSpace& memory() { return memory_; }

  // Runs `kernel` to its end. `explicit_arguments` are laid out as the metadata says and have
  // explicit_bytes(). The shape must be within broken_limit(). Throws SimFault, and std::bad_alloc
  // when the host has no memory for the arguments.
  WorkgroupStats launch(const Kernel& kernel, const LaunchShape& shape,
                        std::span<const uint8_t> explicit_arguments, TraceSink* trace = nullptr);

  // Wave instructions of all launches that ended without a fault.
  uint64_t wave_instructions() const { return wave_instructions_.load(); }

 private:
  const Card& card_;
  AddressSpace memory_;
  std::atomic<uint64_t> wave_instructions_{0};
};

}  // namespace fasim
