// The simulated card: its memory, and the launch of a kernel on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/card.h"
#include "device/code_object.h"
#include "device/kernarg.h"
#include "exec/launch.h"
#include "mem/address_space.h"
#include "timing/card_timing.h"

namespace fasim {

class Device {
 public:
  // Both outlive the device.
  Device(const Card& card, const CardTiming& timing) : card_(card), timing_(timing) {}

  const Card& card() const { return card_; }
  AddressSpace& memory() { return memory_; }

  // Runs `kernel` to its end. `explicit_arguments` are laid out as the metadata says and have
  // explicit_bytes(). The shape must be within broken_limit(). Throws SimFault, and std::bad_alloc
  // when the host has no memory for the arguments.
  WorkgroupStats launch(const Kernel& kernel, const LaunchShape& shape,
                        std::span<const uint8_t> explicit_arguments, TraceSink* trace = nullptr);

  // Wave instructions of all launches that ended without a fault.
  uint64_t wave_instructions() const { return wave_instructions_.load(); }

  // Whether launches are timed from now on; that is about ten times slower. Results are the same,
  // but the strict checks are off.
  void set_timed(bool timed);

  // Whether timed launches run a sample of their workgroups only and leave the others undone.
  void set_sampled_only(bool sampled_only) { sampled_only_ = sampled_only; }

  struct Clock {
    double milliseconds = 0;  // simulated, of all timed launches with what it takes to start them
    uint64_t untimed_launches = 0;
  };
  Clock clock() const;
  // The launches since they were timed last, each as JSON.
  std::vector<std::string> profiles() const;

 private:
  WorkgroupStats run(const Kernel& kernel, const Launch& launch, bool timed, TraceSink* trace);

  const Card& card_;
  const CardTiming& timing_;
  AddressSpace memory_;
  std::atomic<uint64_t> wave_instructions_{0};
  std::atomic<bool> timed_{false}, sampled_only_{false};
  mutable std::mutex clock_mutex_;
  Clock clock_;
  std::vector<std::string> profiles_;
};

}  // namespace fasim
