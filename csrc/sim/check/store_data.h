// What a store writes, byte by byte.
#pragma once

#include <cstdint>

namespace fasim {

struct StoreData {
  const uint32_t* rows = nullptr;  // VGPRs
  uint32_t shift = 0;              // first bit of the first row

  uint8_t byte(uint32_t lane, uint32_t i) const {
    return static_cast<uint8_t>(rows[i / 4 * 64 + lane] >> (shift + i % 4 * 8));
  }
};

}  // namespace fasim
