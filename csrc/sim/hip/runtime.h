// The state behind the exported functions.
#pragma once

#include "device/device.h"
#include "hip/abi.h"
#include "hip/allocations.h"
#include "hip/handles.h"
#include "hip/modules.h"
#include "hip/registered.h"

namespace fasim::hip {

struct Stream {
  unsigned flags = 0;
  int priority = 0;
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
};

struct Runtime {
  // Made at the first call and never destroyed: programs call HIP from static destructors.
  static Runtime& get();

  Device device{kMi50};
  Allocations allocations{device.memory(), kMi50.memory_bytes};
  Modules modules{device};
  RegisteredPrograms programs{modules};
  Handles<Stream> streams{"stream"};
  Handles<Event> events{"event"};
};

// Throws ApiFailure unless `ordinal` is 0, the only device.
void require_device(int ordinal);
// Accepts live streams, the null stream, the legacy stream and the per-thread stream.
void require_stream(const void* stream);

}  // namespace fasim::hip
