// Events. A recorded event has happened; an elapsed time would be made up, so there is none.
#include <string>

#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

constexpr unsigned kDisableTiming = 2;

hipError_t create(const char* function, Event** event, unsigned flags) {
  return api(function, [&] {
    require(event, "event");
    *event = Runtime::get().events.add({flags, false});
  });
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
  return api(__func__, [&] { Runtime::get().events.remove(event); });
}

FASIM_API hipError_t hipEventRecord(const void* event, const void* stream) {
  return api(__func__, [&] {
    require_stream(stream);
    Runtime::get().events.require(event)->recorded = true;
  });
}

FASIM_API hipError_t hipEventRecordWithFlags(const void* event, const void* stream, unsigned) {
  return api(__func__, [&] {
    require_stream(stream);
    Runtime::get().events.require(event)->recorded = true;
  });
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
    fail(hipErrorNotSupported, "the simulated card has no timing model");
  });
}

}  // namespace fasim::hip
