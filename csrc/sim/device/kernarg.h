// The two buffers that a launch puts into device memory: kernel arguments and the dispatch packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/code_object.h"

namespace fasim {

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};   // workgroups
  uint32_t block[3] = {1, 1, 1};  // work-items of a workgroup
  uint32_t dynamic_lds = 0;

  uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

// Scratch that each lane of a launch gets.
uint32_t scratch_bytes(const KernelMetadata& kernel);

// The kernel argument segment: `explicit_arguments` (exactly explicit_bytes() of them, already laid
// out) followed by the hidden arguments that the kernel's metadata asks for.
std::vector<uint8_t> build_kernarg(const KernelMetadata& kernel, const LaunchShape& shape,
                                   std::span<const uint8_t> explicit_arguments);

// The 64-byte AQL kernel dispatch packet, which code of version 4 reads its sizes from.
std::vector<uint8_t> build_dispatch_packet(const Kernel& kernel, const LaunchShape& shape,
                                           uint64_t kernarg_address);

}  // namespace fasim
