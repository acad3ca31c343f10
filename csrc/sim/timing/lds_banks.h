// How long an LDS instruction holds its port and the bank array.
//
// 32 banks of 4 bytes. An instruction's lanes are served in fixed groups; within a group, lanes
// that touch the same bank at different dwords need a pass each. Two SIMD pairs have a port each
// and share the array, so a conflict of one pair also delays the other.
#pragma once

#include <array>
#include <cstdint>

namespace fasim {

struct LdsCost {
  uint32_t port = 0;      // clocks of the SIMD pair's port
  uint32_t array = 0;     // clocks of the bank array, conflicts included
  uint32_t conflict = 0;  // of `array`, what a conflict-free access would not have needed
};

enum class LdsOp : uint8_t { read, write, atomic, exchange };

// `offset` are the lanes' byte offsets, each the start of `bytes` (2, 4, 8, 12 or 16) bytes.
struct LdsAccess {
  LdsOp op = LdsOp::read;
  uint32_t bytes = 4;
  uint64_t exec = ~0ull;
  std::array<uint32_t, 64> offset{};
};

// Array passes of one access, without the port.
uint32_t bank_passes(const LdsAccess& access);
uint32_t conflict_free_passes(const LdsAccess& access);

// Port clocks of one instruction that moves `bytes` per lane in all.
uint32_t lds_port_clocks(LdsOp op, uint32_t bytes);

}  // namespace fasim
