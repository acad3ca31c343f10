// One launch, however it was asked for.
#pragma once

#include "device/device.h"

namespace fasim::hip {

struct LaunchCall {
  LaunchShape shape;
  const void* stream = nullptr;
  void** params = nullptr;  // one pointer for each explicit argument
  void** extra = nullptr;   // or: a marker list that names one packed buffer
};

// Runs the kernel to its end. Throws ApiFailure for a bad call and SimFault for a fault.
void launch(const Kernel& kernel, const LaunchCall& call);

}  // namespace fasim::hip
