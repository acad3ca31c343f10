// Which host byte ranges the simulated card may touch.
//
// Device pointers are host virtual addresses (identity mapping), so the only state is an interval
// map from address to live allocation or registered host range.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>

namespace fasim {

class AddressSpace {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;  // one past the last byte
    bool read_only = false;
    std::string what;

    uint64_t size() const { return end - begin; }
    bool contains(uint64_t address) const { return address >= begin && address < end; }
  };

  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  // Memory owned by the card: 256-byte aligned, inaccessible guard pages on both sides, filled with
  // a poison pattern. Returns null when the host has no memory left. A size of 0 reserves one byte.
  void* allocate(size_t bytes, const char* what);
  // False when `pointer` is not the start of a live allocation. With `how`, e.g. "freed by
  // hipFree", the addresses stay unused for a while, so that a fault text can say what was there.
  bool release(void* pointer, const char* how = nullptr);

  // Host memory made visible to the card. False when it overlaps a live range or is empty.
  bool register_range(void* pointer, size_t bytes, bool read_only,
                      const char* what = "registered host memory");
  // False when `pointer` is not the start of a registered range.
  bool unregister_range(void* pointer);

  std::optional<Range> find(uint64_t address) const;
  // One sentence that places `address` relative to the range that was released there, or else to
  // the closest live range, for fault texts.
  std::string describe(uint64_t address) const;

  size_t bytes_in_use() const;
  // Changes whenever a range comes or goes, so that a cached Range can be trusted until then.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    Range range;
    void* mapping = nullptr;  // null for registered host memory
    size_t mapping_bytes = 0;
    const char* how = nullptr;  // it was released
  };

  // The last ranges that went, oldest first.
  static constexpr size_t kRemembered = 128;

  bool overlaps(uint64_t begin, uint64_t end) const;
  void keep_released(Entry entry, const char* how);
  const Entry* find_released(uint64_t address) const;

  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // keyed by range.begin
  std::deque<Entry> released_;
  size_t bytes_in_use_ = 0;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace fasim
