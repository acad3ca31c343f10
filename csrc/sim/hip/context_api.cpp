// Contexts: there is one, the device's primary context, and it is always current.
#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

struct Context {};
Context g_primary;

void give(Context** context, const char* argument) {
  require(context, argument);
  *context = &g_primary;
}

void require_context(const Context* context) {
  if (context != nullptr && context != &g_primary)
    fail(hipErrorInvalidContext, "ctx " + hex(context) + " is not the device's primary context");
}

}  // namespace

FASIM_API hipError_t hipCtxCreate(Context** context, unsigned, int device) {
  return api(__func__, [&] {
    require_device(device);
    give(context, "ctx");
  });
}

FASIM_API hipError_t hipCtxDestroy(Context* context) {
  return api(__func__, [&] { require_context(context); });
}

FASIM_API hipError_t hipCtxGetCurrent(Context** context) {
  return api(__func__, [&] { give(context, "ctx"); });
}

FASIM_API hipError_t hipCtxSetCurrent(Context* context) {
  return api(__func__, [&] { require_context(context); });
}

FASIM_API hipError_t hipCtxPushCurrent(Context* context) {
  return api(__func__, [&] { require_context(context); });
}

FASIM_API hipError_t hipCtxPopCurrent(Context** context) {
  return api(__func__, [&] { give(context, "ctx"); });
}

FASIM_API hipError_t hipCtxGetDevice(int* device) {
  return api(__func__, [&] {
    require(device, "device");
    *device = 0;
  });
}

FASIM_API hipError_t hipCtxSynchronize() {
  return api(__func__, [] {});
}

FASIM_API hipError_t hipDevicePrimaryCtxRetain(Context** context, int device) {
  return api(__func__, [&] {
    require_device(device);
    give(context, "pctx");
  });
}

FASIM_API hipError_t hipDevicePrimaryCtxRelease(int device) {
  return api(__func__, [&] { require_device(device); });
}

FASIM_API hipError_t hipDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return api(__func__, [&] {
    require_device(device);
    if (flags != nullptr) *flags = 0;
    if (active != nullptr) *active = 1;
  });
}

}  // namespace fasim::hip
