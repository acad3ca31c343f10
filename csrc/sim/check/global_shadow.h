// Which workgroup read and wrote each byte of global memory in the current launch, to find
// workgroups that race.
//
// Nothing orders the workgroups of a launch but atomics. So two of them race when both touch a byte
// and one writes it plainly. Not reported: accesses of a workgroup that has acquired before (a
// returning atomic, or the buffer_wbinvl1 of an acquire fence), because it may have waited for the
// other; loads with glc, which is how atomic loads are compiled; a plain load beside another
// workgroup's atomic, because an atomic without an opcode is compiled to a load and a loop of
// compare-and-swap; and workgroups that store the same value.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "check/store_data.h"

namespace fasim {

struct GlobalAccess {
  const uint64_t* addresses = nullptr;  // one per lane
  uint64_t lanes = 0;
  uint32_t bytes = 0;
};

// Shared by the workers of a launch.
class GlobalShadow {
 public:
  enum class Use : uint8_t { read, write, atomic };
  struct Group {
    uint32_t id = 0;  // counts workgroups, x fastest
    bool acquired = false;
  };

  explicit GlobalShadow(const uint32_t grid[3]);
  ~GlobalShadow();

  // Throws SimFault for a race. `data` is for writes.
  void touch(const Group& group, const GlobalAccess& access, Use use, const StoreData& data = {});

 private:
  struct Region;
  struct Touch;

  Region& region_of(uint64_t address);
  [[noreturn]] void refuse(const Touch& touch, uint32_t other, const char* did) const;
  void touch_byte(const Touch& touch, Region& region) const;

  const std::array<uint32_t, 3> grid_;
  std::shared_mutex mutex_;  // of the map
  std::unordered_map<uint64_t, std::unique_ptr<Region>> regions_;
};

}  // namespace fasim
