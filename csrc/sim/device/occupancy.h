// How many waves and workgroups of a kernel fit on one compute unit at a time.
#pragma once

#include <cstdint>

#include "device/card.h"

namespace fasim {

struct KernelResources {
  uint32_t vgprs;      // a lane
  uint32_t sgprs;      // a wave, with VCC, FLAT_SCRATCH and XNACK_MASK
  uint32_t lds_bytes;  // a workgroup, static + dynamic
  uint32_t threads;    // a workgroup
};

struct Occupancy {
  uint32_t waves_per_simd;  // allowed by registers alone
  uint32_t groups_per_cu;   // allowed by registers, LDS and barriers together
  const char* limited_by;   // "registers", "LDS", "workgroup slots": the tightest of them
};

// threads must be in 1 .. card.max_group_threads.
Occupancy occupancy(const Card& card, const KernelResources& kernel);

}  // namespace fasim
