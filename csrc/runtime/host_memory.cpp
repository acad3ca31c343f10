#include "runtime/host_memory.h"

#include <algorithm>
#include <string>

namespace flashattn {
std::vector<ByteRange> merge_overlapping(std::vector<ByteRange> ranges) {
  std::erase_if(ranges, [](const ByteRange& range) { return range.begin == range.end; });
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> merged;
  for (const ByteRange& range : ranges) {
    if (!merged.empty() && range.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

HostRegistration::HostRegistration(const HipApi& simulator, const TouchedMemory& touched)
    : simulator_(simulator) {
  try {
    for (const ByteRange& range : merge_overlapping(touched.inputs)) {
      register_range(range, Access::read);
    }
    for (const ByteRange& range : merge_overlapping(touched.outputs)) {
      register_range(range, Access::write);
    }
  } catch (...) {
    unregister_all();  // a constructor that throws runs no destructor
    throw;
  }
}

HostRegistration::~HostRegistration() { unregister_all(); }

void HostRegistration::register_range(const ByteRange& range, Access access) {
  const auto bytes = static_cast<size_t>(range.end - range.begin);
  if (bytes == 0) return;
  constexpr unsigned default_flags = 0;
  const HipStatus status = access == Access::read
                               ? simulator_.register_read_only(range.begin, bytes)
                               : simulator_.host_register(range.begin, bytes, default_flags);
  simulator_.check(status, "hipHostRegister",
                   "making " + std::to_string(bytes) + " bytes of a cpu tensor visible");
  registered_.push_back(range.begin);
}

void HostRegistration::unregister_all() noexcept {
  // Unregistering what this object registered cannot fail; a destructor could not report it.
  for (std::byte* begin : registered_) (void)simulator_.host_unregister(begin);
  registered_.clear();
}

}  // namespace flashattn
