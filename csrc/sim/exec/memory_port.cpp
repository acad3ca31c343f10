#include "exec/memory_port.h"

#include <cinttypes>

#include "check/fault.h"
#include "check/text.h"

namespace fasim {

void MemoryPort::add_launch_range(uint64_t begin, uint64_t bytes, const char* what) {
  if (bytes == 0) return;
  launch_ranges_.at(launch_range_count_++) = {begin, begin + bytes, true, what};
}

void MemoryPort::forget() {
  windows_.fill(Window{});
  generation_ = space_->generation();
}

bool MemoryPort::look_up(uint64_t begin, uint64_t end, Access access) {
  auto permits = [&](const AddressSpace::Range& r) {
    return begin >= r.begin && end <= r.end && end >= begin &&
           (access == Access::read || !r.read_only);
  };
  for (size_t i = 0; i < launch_range_count_; ++i) {
    if (permits(launch_ranges_[i])) return true;
  }
  const auto range = space_->find(begin);
  if (!range || !permits(*range)) return false;
  windows_[next_window_] = {range->begin, range->end, range->read_only};
  next_window_ = (next_window_ + 1) % kWindows;
  return true;
}

void MemoryPort::refuse(uint64_t address, uint32_t bytes, Access access, int lane) {
  const char* verb = access == Access::read ? "read" : "write";
  const uint32_t alignment = bytes < 4 ? bytes : 4;
  if (address & (alignment - 1)) {
    throw SimFault(
        text("%u-byte %s at %#" PRIx64 " is not %u-byte aligned", bytes, verb, address, alignment),
        lane, address);
  }
  std::string nearest = space_->describe(address);
  for (size_t i = 0; i < launch_range_count_; ++i) {
    const AddressSpace::Range& r = launch_ranges_[i];
    if (address >= r.begin && address < r.end + 64) {
      nearest = text("the %s is [%#" PRIx64 ", %#" PRIx64 "), %" PRIu64 " bytes, read-only",
                     r.what.c_str(), r.begin, r.end, r.size());
    }
  }
  throw SimFault(text("%u-byte %s at %#" PRIx64 " is outside what the card may touch; %s", bytes,
                      verb, address, nearest.c_str()),
                 lane, address);
}

}  // namespace fasim
