#include "timing/lds_banks.h"

#include <algorithm>
#include <bit>

namespace fasim {
namespace {

constexpr uint32_t kBanks = 32;

// Which lanes are served together. For b128 reads the groups are not consecutive: ROCm's Composable
// Kernel documents {0-3, 20-23}, {4-7, 16-19}, {8-11, 28-31}, {12-15, 24-27}, and the same + 32.
constexpr std::array<uint64_t, 8> kReadGroups128 = [] {
  std::array<uint64_t, 8> groups{};
  constexpr int first[4] = {0, 4, 8, 12}, second[4] = {20, 16, 28, 24};
  for (int half = 0; half < 2; ++half) {
    for (int g = 0; g < 4; ++g) {
      groups[half * 4 + g] = (0xfull << first[g] | 0xfull << second[g]) << (half * 32);
    }
  }
  return groups;
}();

uint32_t lanes_per_group(uint32_t bytes) {
  if (bytes <= 4) return 32;
  return bytes == 8 ? 16 : 8;
}

uint64_t group_mask(const LdsAccess& access, uint32_t group, uint32_t lanes) {
  if (access.bytes == 16 && access.op == LdsOp::read) return kReadGroups128[group];
  const uint64_t ones = (1ull << lanes) - 1;
  return ones << (group * lanes);
}

// Most different dwords that the lanes of `mask` want from one bank.
uint32_t passes_of_group(const LdsAccess& access, uint64_t mask) {
  constexpr uint32_t kMost = 64;
  std::array<std::array<uint32_t, kMost>, kBanks> wanted;
  std::array<uint32_t, kBanks> count{};
  uint32_t passes = 0;
  const uint32_t dwords = std::max(access.bytes / 4, 1u);
  for (uint64_t rest = mask & access.exec; rest; rest &= rest - 1) {
    const uint32_t first = access.offset[std::countr_zero(rest)] / 4;
    for (uint32_t dword = first; dword < first + dwords; ++dword) {
      auto& bank = wanted[dword % kBanks];
      uint32_t& n = count[dword % kBanks];
      const auto end = bank.begin() + n;
      if (std::find(bank.begin(), end, dword) != end) continue;
      bank[n++] = dword;
      passes = std::max(passes, n);
    }
  }
  return passes;
}

}  // namespace

uint32_t bank_passes(const LdsAccess& access) {
  const uint32_t lanes = lanes_per_group(access.bytes);
  uint32_t passes = 0;
  for (uint32_t group = 0; group < 64 / lanes; ++group) {
    passes += passes_of_group(access, group_mask(access, group, lanes));
  }
  return passes;
}

uint32_t conflict_free_passes(const LdsAccess& access) {
  const uint32_t lanes = lanes_per_group(access.bytes);
  uint32_t passes = 0;
  for (uint32_t group = 0; group < 64 / lanes; ++group) {
    passes += (group_mask(access, group, lanes) & access.exec) != 0;
  }
  return passes;
}

uint32_t lds_port_clocks(LdsOp op, uint32_t bytes) {
  const uint32_t dwords = std::max(bytes / 4, 1u);
  switch (op) {
    case LdsOp::read:
      return dwords == 3 ? 16 : 4 * dwords;  // 64 bytes a clock outward
    case LdsOp::write:
    case LdsOp::atomic:
      return 4 * (dwords + 1);  // addresses share the way in
    case LdsOp::exchange:
      return 8;  // data and address in, data out
  }
  return 4;
}

}  // namespace fasim
