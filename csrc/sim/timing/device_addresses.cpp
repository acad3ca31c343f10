#include "timing/device_addresses.h"

#include <iterator>
#include <optional>

namespace fasim {
namespace {

constexpr uint64_t kPage = 4096;
// What is kept of a host address. Allocators of hosts and cards align at least to it, so that a
// tensor's place in its cache lines does not depend on the process.
constexpr uint64_t kKeptAlignment = 64;

}  // namespace

void DeviceAddresses::place(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t page = (end_ + kPage - 1) / kPage * kPage;
  last_ = {begin, bytes, page + begin % kKeptAlignment};
  ranges_[begin] = last_;
  end_ = last_.device + bytes;
}

bool DeviceAddresses::look_up(uint64_t host) {
  const auto after = ranges_.upper_bound(host);
  if (after != ranges_.begin()) {
    const Range& range = std::prev(after)->second;
    if (host - range.begin < range.bytes) {
      last_ = range;
      return true;
    }
  }
  const std::optional<AddressSpace::Range> range = memory_.find(host);
  if (range) place(range->begin, range->size());
  return range.has_value();
}

}  // namespace fasim
