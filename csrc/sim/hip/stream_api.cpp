// Streams. Work has ended when the call that queued it returns, so a stream holds only what it was
// created with, and waiting on one is checking its handle.
#include <algorithm>
#include <string>

#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

constexpr unsigned kNonBlocking = 1;  // the only stream flag
constexpr int kLeastPriority = 1, kGreatestPriority = -1;

hipError_t create(const char* function, Stream** stream, unsigned flags, int priority) {
  return api(function, [&] {
    require(stream, "stream");
    if (flags > kNonBlocking)
      fail(hipErrorInvalidValue, "flags=" + std::to_string(flags) + ", allowed: 0, 1");
    const int clamped = std::min(std::max(priority, kGreatestPriority), kLeastPriority);
    *stream = Runtime::get().streams.add({flags, clamped});
  });
}

// The stream behind a handle; the streams that always exist have the default settings.
Stream settings(const void* stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream) return {};
  return *Runtime::get().streams.require(stream);
}

}  // namespace

FASIM_API hipError_t hipStreamCreate(Stream** stream) { return create(__func__, stream, 0, 0); }

FASIM_API hipError_t hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return create(__func__, stream, flags, 0);
}

FASIM_API hipError_t hipStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  return create(__func__, stream, flags, priority);
}

FASIM_API hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api(__func__, [&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

FASIM_API hipError_t hipStreamDestroy(const void* stream) {
  return api(__func__, [&] { Runtime::get().streams.remove(stream); });
}

FASIM_API hipError_t hipStreamSynchronize(const void* stream) {
  return api(__func__, [&] { require_stream(stream); });
}

FASIM_API hipError_t hipStreamQuery(const void* stream) {
  return api(__func__, [&] { require_stream(stream); });
}

FASIM_API hipError_t hipStreamWaitEvent(const void* stream, const void* event, unsigned) {
  return api(__func__, [&] {
    require_stream(stream);
    Runtime::get().events.require(event);
  });
}

FASIM_API hipError_t hipStreamGetFlags(const void* stream, unsigned* flags) {
  return api(__func__, [&] {
    require(flags, "flags");
    *flags = settings(stream).flags;
  });
}

FASIM_API hipError_t hipStreamGetPriority(const void* stream, int* priority) {
  return api(__func__, [&] {
    require(priority, "priority");
    *priority = settings(stream).priority;
  });
}

FASIM_API hipError_t hipStreamGetDevice(const void* stream, int* device) {
  return api(__func__, [&] {
    require(device, "device");
    require_stream(stream);
    *device = 0;
  });
}

FASIM_API int hipGetStreamDeviceId(const void*) { return 0; }

// Graph capture is not supported, so no stream ever captures.
FASIM_API hipError_t hipStreamIsCapturing(const void* stream, int* status) {
  return api(__func__, [&] {
    require(status, "pCaptureStatus");
    require_stream(stream);
    *status = 0;
  });
}

FASIM_API hipError_t hipStreamGetCaptureInfo(const void* stream, int* status,
                                             unsigned long long* id) {
  return api(__func__, [&] {
    require(status, "pCaptureStatus");
    require_stream(stream);
    *status = 0;
    if (id != nullptr) *id = 0;
  });
}

FASIM_API hipError_t hipStreamAddCallback(void* stream, void (*callback)(void*, hipError_t, void*),
                                          void* user_data, unsigned flags) {
  return api(__func__, [&] {
    require(reinterpret_cast<const void*>(callback), "callback");
    if (flags != 0) fail(hipErrorInvalidValue, "flags=" + std::to_string(flags) + ", allowed: 0");
    require_stream(stream);
    callback(stream, hipSuccess, user_data);
  });
}

FASIM_API hipError_t hipLaunchHostFunc(const void* stream, void (*function)(void*),
                                       void* user_data) {
  return api(__func__, [&] {
    require(reinterpret_cast<const void*>(function), "fn");
    require_stream(stream);
    function(user_data);
  });
}

}  // namespace fasim::hip
