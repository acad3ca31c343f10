// One worker's checked way to global memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "mem/address_space.h"

namespace fasim {

enum class Access : uint8_t { read, write };

class MemoryPort {
 public:
  MemoryPort() = default;
  explicit MemoryPort(const AddressSpace* space) : space_(space) {}

  // Makes a small range readable by every wave of the launch (kernarg segment, dispatch packet).
  void add_launch_range(uint64_t begin, uint64_t bytes, const char* what);

  // True when [begin, end) lies inside one live range that permits the access.
  bool covers(uint64_t begin, uint64_t end, Access access) {
    if (generation_ != space_->generation()) forget();
    for (const Window& w : windows_) {
      if (begin >= w.begin && begin < w.end && end <= w.end &&
          (access == Access::read || !w.read_only))
        return true;
    }
    return look_up(begin, end, access);
  }

  // Whether [begin, end), covered just now, lies inside one range that no kernel can write.
  bool read_only(uint64_t begin, uint64_t end) const {
    auto holds = [&](const auto& range) {
      return range.read_only && begin >= range.begin && end <= range.end;
    };
    return std::ranges::any_of(windows_, holds) || std::ranges::any_of(launch_ranges_, holds);
  }

  // Throws SimFault unless the access is covered and aligned to min(bytes, 4).
  void check(uint64_t address, uint32_t bytes, Access access, int lane) {
    const uint32_t alignment = bytes < 4 ? bytes : 4;
    if ((address & (alignment - 1)) || !covers(address, address + bytes, access)) {
      refuse(address, bytes, access, lane);
    }
  }

 private:
  struct Window {
    uint64_t begin = 1, end = 0;
    bool read_only = false;
  };
  // Q, K, V, O, LSE and the kernarg segment of an attention kernel fit at once.
  static constexpr size_t kWindows = 8;
  static constexpr size_t kLaunchRanges = 2;

  void forget();
  bool look_up(uint64_t begin, uint64_t end, Access access);
  [[noreturn]] void refuse(uint64_t address, uint32_t bytes, Access access, int lane);

  const AddressSpace* space_ = nullptr;
  uint64_t generation_ = 0;
  std::array<Window, kWindows> windows_{};
  size_t next_window_ = 0;
  std::array<AddressSpace::Range, kLaunchRanges> launch_ranges_{};
  size_t launch_range_count_ = 0;
};

}  // namespace fasim
