// The V# of a buffer instruction.
#pragma once

#include <cstdint>

#include "exec/wave.h"

namespace fasim {

struct BufferResource {
  BufferResource(const Wave& wave, uint16_t first)
      : base(wave.sgpr[first] | static_cast<uint64_t>(wave.sgpr[first + 1] & 0xffff) << 32),
        stride(wave.sgpr[first + 1] >> 16 & 0x3fff),
        swizzled(wave.sgpr[first + 1] >> 31),
        records(wave.sgpr[first + 2]) {}
  uint64_t base;
  uint32_t stride;
  bool swizzled;  // scratch
  uint32_t records;
};

}  // namespace fasim
