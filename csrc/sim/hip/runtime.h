// The state behind the exported functions.
#pragma once

#include <atomic>

#include "device/card_facts.h"
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
  Device::Clock at{};  // when it was recorded
};

struct Runtime {
  // Made at the first call and never destroyed: programs call HIP from static destructors.
  static Runtime& get();

  Device device{card_facts().card, card_facts().timing};
  Allocations allocations{device.memory(), card_facts().card.memory_bytes};
  Modules modules{device};
  RegisteredPrograms programs{modules};
  Handles<Stream> streams{"stream"};
  Handles<Event> events{"event"};
  std::atomic<int> timing_events{0};  // live events that can tell a time

  // Launches are timed while there are such events; FLASHATTN_SIM_TIMING 1 or 0 decides otherwise.
  void choose_timing();
};

// Throws ApiFailure unless `ordinal` is 0, the only device.
void require_device(int ordinal);
// Accepts live streams, the null stream, the legacy stream and the per-thread stream.
void require_stream(const void* stream);

}  // namespace fasim::hip
