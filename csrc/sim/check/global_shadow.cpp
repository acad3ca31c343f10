#include "check/global_shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <new>

#include "check/fault.h"
#include "check/text.h"

namespace fasim {
namespace {

constexpr uint64_t kRegionShift = 20, kRegionBytes = 1ull << kRegionShift;

// Cells are 0, or hold workgroup + 1: a writer's shifted by one, with the low bit for "only by
// atomics". Many plain writers have written the same value.
using Cell = uint32_t;
constexpr Cell kManyReaders = ~0u, kManyAtomics = ~0u, kManyWriters = ~1u, kByAtomics = 1;

bool plain(Cell writer) { return !(writer & kByAtomics); }

// One T for each byte of a region: zeros, which take no memory until they are written.
template <class T>
class Cells {
 public:
  Cells() {
    void* p = mmap(nullptr, kRegionBytes * sizeof(T), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    cells_ = static_cast<T*>(p);
  }
  ~Cells() { munmap(cells_, kRegionBytes * sizeof(T)); }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  T& at(uint64_t address) { return cells_[address % kRegionBytes]; }

 private:
  T* cells_;
};

}  // namespace

struct GlobalShadow::Region {
  std::mutex mutex;  // of the cells
  Cells<Cell> writers, readers;
  Cells<uint8_t> written;  // values; memory itself may get them later, from another worker
};

// One byte of one lane.
struct GlobalShadow::Touch {
  Use use;
  const Group& group;
  int lane;
  uint64_t address;
  uint8_t value;  // of a write
};

GlobalShadow::GlobalShadow(const uint32_t grid[3]) : grid_{grid[0], grid[1], grid[2]} {}
GlobalShadow::~GlobalShadow() = default;

GlobalShadow::Region& GlobalShadow::region_of(uint64_t address) {
  const uint64_t number = address >> kRegionShift;
  {
    const std::shared_lock lock(mutex_);
    const auto found = regions_.find(number);
    if (found != regions_.end()) return *found->second;
  }
  const std::unique_lock lock(mutex_);
  std::unique_ptr<Region>& region = regions_[number];
  if (!region) region = std::make_unique<Region>();
  return *region;
}

void GlobalShadow::touch(const Group& group, const GlobalAccess& access, Use use,
                         const StoreData& data) {
  Region* region = nullptr;
  uint64_t number = 0;
  std::unique_lock<std::mutex> lock;
  for (uint64_t left = access.lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    for (uint32_t i = 0; i < access.bytes; ++i) {
      const uint64_t at = access.addresses[lane] + i;
      if (!region || at >> kRegionShift != number) {
        lock = {};
        region = &region_of(at);
        number = at >> kRegionShift;
        lock = std::unique_lock(region->mutex);
      }
      const uint8_t value =
          use == Use::write ? data.byte(static_cast<uint32_t>(lane), i) : uint8_t{0};
      touch_byte({use, group, lane, at, value}, *region);
    }
  }
}

void GlobalShadow::touch_byte(const Touch& t, Region& region) const {
  Cell &writer = region.writers.at(t.address), &reader = region.readers.at(t.address);
  const Cell me = t.group.id + 1;
  const bool others_wrote = writer != 0 && writer >> 1 != me;
  const bool others_read = reader != 0 && reader != me, free = t.group.acquired;
  switch (t.use) {
    case Use::read:
      if (others_wrote && plain(writer) && writer != kManyWriters && !free)
        refuse(t, writer >> 1, "wrote");
      reader = others_read ? kManyReaders : me;
      break;
    case Use::write: {
      uint8_t& value = region.written.at(t.address);
      const bool same = others_wrote && plain(writer) && value == t.value;
      if (others_wrote && !same && !free)
        refuse(t, writer >> 1, plain(writer) ? "wrote" : "updated atomically");
      if (others_read && !same && !free) refuse(t, reader, "read");
      writer = same ? kManyWriters : me << 1;
      value = t.value;
      break;
    }
    case Use::atomic:
      if (others_wrote && plain(writer) && !free) refuse(t, writer >> 1, "wrote");
      if (others_wrote && !plain(writer)) writer = kManyAtomics;
      if (writer == 0) writer = me << 1 | kByAtomics;
  }
}

void GlobalShadow::refuse(const Touch& t, uint32_t other, const char* did) const {
  constexpr const char* kVerbs[] = {"reads", "writes", "updates atomically"};
  std::string who = "another workgroup";
  if (other != kManyReaders && other != kManyWriters >> 1) {
    const uint32_t id = other - 1;
    who = text("workgroup (%u, %u, %u)", id % grid_[0], id / grid_[0] % grid_[1],
               id / grid_[0] / grid_[1]);
  }
  throw SimFault(text("race between workgroups: this one %s %#" PRIx64
                      ", which %s %s in the same launch; expected atomics on it, or an acquire "
                      "(returning atomic or fence) before",
                      kVerbs[static_cast<int>(t.use)], t.address, who.c_str(), did),
                 t.lane, t.address);
}

}  // namespace fasim
