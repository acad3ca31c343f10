// Where the kernels for a tensor run: HIP runtime, device and stream.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/hip_api.h"

namespace flashattn {

struct Placement {
  Backend backend;
  const HipApi& api;
  int device;        // as HIP counts
  HipStream stream;  // torch's current one on that device; null on the simulator
};

// Follows the tensor's device, within what FLASHATTN_ROCM_BACKEND allows.
Placement placement_of(const at::Tensor& tensor);

// Looked up once a process: hipGetDeviceProperties fills some hundred fields at each call.
const DeviceInfo& device_info(const Placement& place);

}  // namespace flashattn
