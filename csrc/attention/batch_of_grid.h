// The batch item of a workgroup, in a grid that core/grid.h folded.
#pragma once

#include <hip/hip_runtime.h>

#include "core/grid.h"

namespace flashattn {

__device__ inline int batch_of_grid() {
  return static_cast<int>(blockIdx.z) * kBatchFold + static_cast<int>(blockIdx.y);
}

}  // namespace flashattn
