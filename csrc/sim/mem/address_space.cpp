#include "mem/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstring>
#include <mutex>

#include "check/text.h"
#include "mem/poison.h"

namespace fasim {
namespace {

// Poisoning is skipped beyond this size: it would commit every page of a large, sparse allocation.
constexpr size_t kPoisonLimit = 64u << 20;

size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void poison(void* begin, size_t bytes) {
  auto* words = static_cast<uint32_t*>(begin);
  for (size_t i = 0; i < bytes / 4; ++i) words[i] = kPoison;
}

}  // namespace

AddressSpace::~AddressSpace() {
  for (auto& [begin, entry] : entries_) {
    if (entry.mapping) munmap(entry.mapping, entry.mapping_bytes);
  }
  for (const Entry& entry : released_) {
    if (entry.mapping) munmap(entry.mapping, entry.mapping_bytes);
  }
}

bool AddressSpace::overlaps(uint64_t begin, uint64_t end) const {
  auto after = entries_.lower_bound(begin);
  if (after != entries_.end() && after->second.range.begin < end) return true;
  return after != entries_.begin() && std::prev(after)->second.range.end > begin;
}

void* AddressSpace::allocate(size_t bytes, const char* what) {
  const size_t page = page_bytes();
  const size_t usable = ((bytes ? bytes : 1) + page - 1) & ~(page - 1);
  const size_t total = usable + 2 * page;
  if (total < bytes) return nullptr;
  void* mapping =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* begin = static_cast<uint8_t*>(mapping) + page;
  if (mprotect(begin, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, total);
    return nullptr;
  }
  if (usable <= kPoisonLimit) poison(begin, usable);
  const auto address = reinterpret_cast<uint64_t>(begin);
  const size_t size = bytes ? bytes : 1;
  std::unique_lock lock(mutex_);
  entries_[address] = {{address, address + size, false, what}, mapping, total};
  bytes_in_use_ += size;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return begin;
}

bool AddressSpace::release(void* pointer, const char* how) {
  std::unique_lock lock(mutex_);
  auto found = entries_.find(reinterpret_cast<uint64_t>(pointer));
  if (found == entries_.end() || !found->second.mapping) return false;
  bytes_in_use_ -= found->second.range.size();
  if (how)
    keep_released(std::move(found->second), how);
  else
    munmap(found->second.mapping, found->second.mapping_bytes);
  entries_.erase(found);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool AddressSpace::register_range(void* pointer, size_t bytes, bool read_only, const char* what) {
  const auto begin = reinterpret_cast<uint64_t>(pointer);
  if (bytes == 0 || begin + bytes < begin) return false;
  std::unique_lock lock(mutex_);
  if (overlaps(begin, begin + bytes)) return false;
  entries_[begin] = {{begin, begin + bytes, read_only, what}, nullptr, 0};
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool AddressSpace::unregister_range(void* pointer) {
  std::unique_lock lock(mutex_);
  auto found = entries_.find(reinterpret_cast<uint64_t>(pointer));
  if (found == entries_.end() || found->second.mapping) return false;
  keep_released(std::move(found->second), "which is no longer registered");
  entries_.erase(found);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

// The pages go back to the host at once; only the addresses are kept.
void AddressSpace::keep_released(Entry entry, const char* how) {
  entry.how = how;
  if (entry.mapping) {
    mmap(entry.mapping, entry.mapping_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  released_.push_back(std::move(entry));
  if (released_.size() <= kRemembered) return;
  const Entry& oldest = released_.front();
  if (oldest.mapping) munmap(oldest.mapping, oldest.mapping_bytes);
  released_.pop_front();
}

const AddressSpace::Entry* AddressSpace::find_released(uint64_t address) const {
  for (auto entry = released_.rbegin(); entry != released_.rend(); ++entry) {
    if (entry->range.contains(address)) return &*entry;
  }
  return nullptr;
}

std::optional<AddressSpace::Range> AddressSpace::find(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return std::nullopt;
  const Range& range = std::prev(after)->second.range;
  if (!range.contains(address)) return std::nullopt;
  return range;
}

std::string AddressSpace::describe(uint64_t address) const {
  std::shared_lock lock(mutex_);
  const auto live = entries_.upper_bound(address);
  const bool inside = live != entries_.begin() && std::prev(live)->second.range.contains(address);
  if (const Entry* gone = inside ? nullptr : find_released(address)) {
    const Range& range = gone->range;
    return text("it is inside [%#" PRIx64 ", %#" PRIx64 ") (%s, %" PRIu64 " bytes), %s",
                range.begin, range.end, range.what.c_str(), range.size(), gone->how);
  }
  if (entries_.empty()) return "there is no live allocation";
  auto after = entries_.upper_bound(address);
  const Range* nearest = nullptr;
  uint64_t distance = ~0ull;
  if (after != entries_.begin()) {
    nearest = &std::prev(after)->second.range;
    distance = nearest->contains(address) ? 0 : address - nearest->end;
  }
  if (after != entries_.end() && after->second.range.begin - address < distance) {
    nearest = &after->second.range;
    distance = nearest->begin - address;
  }
  const std::string where = nearest->contains(address) ? "it starts inside"
                            : address < nearest->begin
                                ? text("it is %" PRIu64 " bytes before", distance)
                                : text("it is %" PRIu64 " bytes past the end of", distance);
  return text("%s [%#" PRIx64 ", %#" PRIx64 ") (%s, %" PRIu64 " bytes%s)", where.c_str(),
              nearest->begin, nearest->end, nearest->what.c_str(), nearest->size(),
              nearest->read_only ? ", read-only" : "");
}

size_t AddressSpace::bytes_in_use() const {
  std::shared_lock lock(mutex_);
  return bytes_in_use_;
}

}  // namespace fasim
