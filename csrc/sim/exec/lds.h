// The workgroup's LDS as one wave's lanes see it.
#pragma once

#include <cstdint>

#include "exec/wave.h"

namespace fasim {

// Throws SimFault unless every lane in `lanes` may access `bytes` at its address + offset, aligned.
void check_lds(const Wave& wave, const uint32_t* addresses, uint64_t lanes, uint32_t offset,
               uint32_t bytes, uint32_t alignment);

}  // namespace fasim
