// Which cache lines and LDS banks an instruction is about to touch, from the wave's state before
// it.
#pragma once

#include <array>
#include <cstdint>

#include "exec/wave.h"
#include "timing/card_timing.h"
#include "timing/device_addresses.h"
#include "timing/inst_timing.h"
#include "timing/lds_banks.h"

namespace fasim {

struct LaneLines {
  // 64 lanes of 16 bytes, each across a line's end.
  static constexpr uint32_t kMost = 128;

  uint32_t count = 0;
  uint32_t address_clocks = 0;        // of the CU's address units
  std::array<uint64_t, kMost> line;   // device addresses divided by the line size
  std::array<uint32_t, kMost> bytes;  // wanted of each
};

LaneLines lane_lines(Wave& wave, const Inst& inst, const InstTiming& timing, uint32_t line_bytes,
                     DeviceAddresses& addresses);

struct ScalarLines {
  uint64_t first = 0, end = 0;
};

ScalarLines scalar_lines(const Wave& wave, const Inst& inst, const InstTiming& timing,
                         uint32_t line_bytes, DeviceAddresses& addresses);

// The last cost of an LDS instruction. Loops repeat the lanes' pattern, often moved as a whole, and
// a move by whole dwords only renames the banks.
struct LdsMemo {
  uint64_t exec = 0;
  std::array<uint32_t, 64> address{};
  LdsCost cost;
};

LdsCost lds_cost(Wave& wave, const Inst& inst, const InstTiming& timing, const CardTiming& card,
                 LdsMemo& memo);

}  // namespace fasim
