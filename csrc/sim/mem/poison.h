#pragma once

#include <cstdint>

namespace fasim {

// What registers, LDS, scratch and fresh card memory hold before the first write: a signalling NaN
// as f32 and as two f16, and no canonical address as 64 bits.
inline constexpr uint32_t kPoison = 0x7fa57da5;

}  // namespace fasim
