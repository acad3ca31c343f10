// Lane by lane: walks over active lanes, and copies between VGPR rows and byte-addressed memory.
#pragma once

#include <bit>
#include <cstdint>

#include "exec/lanes.h"
#include "exec/wave.h"

namespace fasim {

inline constexpr uint64_t kAllLanes = ~0ull;

template <class Fn>
inline void for_each_lane(uint64_t lanes, Fn fn) {
  for (; lanes; lanes &= lanes - 1) fn(static_cast<uint32_t>(std::countr_zero(lanes)));
}

// One lane of a 32-bit row, or of a 64-bit pair of rows.
template <class T>
inline T read_lane(const uint32_t* rows, uint32_t lane) {
  if constexpr (sizeof(T) == 8) {
    return rows[lane] | static_cast<uint64_t>(rows[kLanes + lane]) << 32;
  } else {
    return rows[lane];
  }
}
template <class T>
inline void write_lane(uint32_t* rows, uint32_t lane, T value) {
  rows[lane] = static_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 8) rows[kLanes + lane] = static_cast<uint32_t>(value >> 32);
}

using u32x4 = uint32_t __attribute__((ext_vector_type(4)));

// Dword d of vector l becomes dword l of vector d.
inline void transpose4(u32x4& a, u32x4& b, u32x4& c, u32x4& d) {
  const u32x4 ab_lo = __builtin_shufflevector(a, b, 0, 4, 1, 5),
              ab_hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const u32x4 cd_lo = __builtin_shufflevector(c, d, 0, 4, 1, 5),
              cd_hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 4, 5);
  b = __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 6, 7);
  c = __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 4, 5);
  d = __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 6, 7);
}

// Lanes [begin, end), `kDwords` dwords each: `pointer(lane)` gives a lane's memory.
template <int kDwords, class Pointer>
inline void gather_rows(uint32_t* rows, Pointer pointer, uint32_t begin = 0,
                        uint32_t end = kLanes) {
  if constexpr (kDwords == 4) {
    for (uint32_t lane = begin; lane < end; lane += 4) {
      u32x4 v[4];
      for (uint32_t l = 0; l < 4; ++l) v[l] = load_vector<u32x4>(pointer(lane + l));
      transpose4(v[0], v[1], v[2], v[3]);
      for (uint32_t d = 0; d < 4; ++d) store_vector(rows + d * kLanes + lane, v[d]);
    }
  } else {
    for (uint32_t lane = begin; lane < end; ++lane) {
      uint32_t dwords[kDwords];
      std::memcpy(dwords, pointer(lane), sizeof dwords);
      for (int d = 0; d < kDwords; ++d) rows[d * kLanes + lane] = dwords[d];
    }
  }
}
// Lanes of a full wave that need a memory access of their own. Operands of a matrix product are
// read by many lanes at once: the 16 lanes of a pass share an address (only the first is in the
// mask), or repeat the addresses of the pass before (none is).
inline uint64_t distinct_lanes(const uint32_t* addresses) {
  uint64_t lanes = 0;
  u32x16 before = ~load_vector<u32x16>(addresses);
  for (uint32_t first = 0; first < kLanes; first += kPassLanes) {
    const u32x16 now = load_vector<u32x16>(addresses + first);
    const bool uniform = bits_of(now != u32x16(now[0])) == 0, repeats = bits_of(now != before) == 0;
    lanes |= (uniform ? 1ull : (repeats ? 0ull : 0xffffull)) << first;
    before = now;
  }
  return lanes;
}
// All 64 lanes, with as few accesses as `distinct` says. `rows` may hold the addresses.
template <int kDwords, class Pointer>
inline void gather_shared(uint64_t distinct, uint32_t* rows, Pointer pointer) {
  for (uint32_t first = 0; first < kLanes; first += kPassLanes) {
    const auto lanes = static_cast<uint16_t>(distinct >> first);
    if (lanes == 0xffff) {
      gather_rows<kDwords>(rows, pointer, first, first + kPassLanes);
    } else if (lanes) {
      uint32_t dwords[kDwords];
      std::memcpy(dwords, pointer(first), sizeof dwords);
      for (uint32_t d = 0; d < kDwords; ++d)
        store_vector(rows + d * kLanes + first, u32x16(dwords[d]));
    } else {
      for (uint32_t d = 0; d < kDwords; ++d) {
        uint32_t* to = rows + d * kLanes + first;
        store_vector(to, load_vector<u32x16>(to - kPassLanes));
      }
    }
  }
}
template <int kDwords, class Pointer>
inline void scatter_rows(const uint32_t* rows, Pointer pointer) {
  if constexpr (kDwords == 4) {
    for (uint32_t lane = 0; lane < kLanes; lane += 4) {
      u32x4 v[4];
      for (uint32_t d = 0; d < 4; ++d) v[d] = load_vector<u32x4>(rows + d * kLanes + lane);
      transpose4(v[0], v[1], v[2], v[3]);
      for (uint32_t l = 0; l < 4; ++l) store_vector(pointer(lane + l), v[l]);
    }
  } else {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint32_t dwords[kDwords];
      for (int d = 0; d < kDwords; ++d) dwords[d] = rows[d * kLanes + lane];
      std::memcpy(pointer(lane), dwords, sizeof dwords);
    }
  }
}

}  // namespace fasim
