// Events. A recorded event has happened. Launches are timed while events that can tell a time
// exist, or always or never if FLASHATTN_SIM_TIMING is 1 or 0.
#include <string>

#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

constexpr unsigned kDisableTiming = 2;

hipError_t create(const char* function, Event** event, unsigned flags) {
  return api(function, [&] {
    require(event, "event");
    Runtime& runtime = Runtime::get();
    *event = runtime.events.add({.flags = flags});
    if ((flags & kDisableTiming) == 0) ++runtime.timing_events;
    runtime.choose_timing();
  });
}

void record(const void* event, const void* stream) {
  require_stream(stream);
  const auto live = Runtime::get().events.require(event);
  live->recorded = true;
  live->at = Runtime::get().device.clock();
}

void require_timed(const void* event, const char* argument) {
  const auto live = Runtime::get().events.require(event);
  if (!live->recorded || (live->flags & kDisableTiming) != 0)
    fail(hipErrorInvalidHandle,
         std::string(argument) + " was " +
             (live->recorded ? "created with hipEventDisableTiming" : "never recorded"));
}

}  // namespace

FASIM_API hipError_t hipEventCreate(Event** event) { return create(__func__, event, 0); }

FASIM_API hipError_t hipEventCreateWithFlags(Event** event, unsigned flags) {
  return create(__func__, event, flags);
}

FASIM_API hipError_t hipEventDestroy(const void* event) {
  return api(__func__, [&] {
    Runtime& runtime = Runtime::get();
    const unsigned flags = runtime.events.require(event)->flags;
    runtime.events.remove(event);
    if ((flags & kDisableTiming) == 0) --runtime.timing_events;
    runtime.choose_timing();
  });
}

FASIM_API hipError_t hipEventRecord(const void* event, const void* stream) {
  return api(__func__, [&] { record(event, stream); });
}

FASIM_API hipError_t hipEventRecordWithFlags(const void* event, const void* stream, unsigned) {
  return api(__func__, [&] { record(event, stream); });
}

FASIM_API hipError_t hipEventSynchronize(const void* event) {
  return api(__func__, [&] { Runtime::get().events.require(event); });
}

FASIM_API hipError_t hipEventQuery(const void* event) {
  return api(__func__, [&] { Runtime::get().events.require(event); });
}

FASIM_API hipError_t hipEventElapsedTime(float* milliseconds, const void* start, const void* stop) {
  return api(__func__, [&] {
    require(milliseconds, "ms");
    require_timed(start, "start");
    require_timed(stop, "stop");
    const Device::Clock from = Runtime::get().events.require(start)->at;
    const Device::Clock to = Runtime::get().events.require(stop)->at;
    if (from.untimed_launches != to.untimed_launches)
      fail(hipErrorNotSupported,
           "a launch between the events was not timed (FLASHATTN_SIM_TIMING is 0)");
    *milliseconds = static_cast<float>(to.milliseconds - from.milliseconds);
  });
}

}  // namespace fasim::hip
