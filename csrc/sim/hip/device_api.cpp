// Initialisation, versions, device query, primary context.
#include <cstdio>
#include <cstring>
#include <string>

#include "hip/api.h"
#include "hip/properties.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

// HIP 6.3: the numbers of hipMemoryType and the R0600 properties are those of HIP 6.
constexpr int kVersion = 60300000;
constexpr const char* kPciBusId = "0000:00:00.0";

// Both versions of the query fill their own layout.
template <typename Properties>
hipError_t properties(const char* function, Properties* result, int device) {
  return api(function, [&] {
    require(result, "prop");
    require_device(device);
    fill(*result, Runtime::get().device.card());
  });
}

hipError_t version(const char* function, int* result) {
  return api(function, [&] {
    require(result, "version");
    *result = kVersion;
  });
}

hipError_t copy_text(const char* function, char* result, int length, int device, const char* text) {
  return api(function, [&] {
    require(result, "result");
    require_device(device);
    if (length <= 0) fail(hipErrorInvalidValue, "len=" + std::to_string(length));
    std::snprintf(result, static_cast<size_t>(length), "%s", text);
  });
}

}  // namespace

FASIM_API hipError_t hipInit(unsigned flags) {
  return api(__func__, [&] {
    if (flags != 0) fail(hipErrorInvalidValue, "flags=" + std::to_string(flags) + ", allowed: 0");
    Runtime::get();
  });
}

FASIM_API hipError_t hipDriverGetVersion(int* result) { return version(__func__, result); }
FASIM_API hipError_t hipRuntimeGetVersion(int* result) { return version(__func__, result); }

FASIM_API hipError_t hipGetDeviceCount(int* count) {
  return api(__func__, [&] {
    require(count, "count");
    *count = 1;
  });
}

FASIM_API hipError_t hipGetDevice(int* device) {
  return api(__func__, [&] {
    require(device, "deviceId");
    *device = 0;
  });
}

FASIM_API hipError_t hipSetDevice(int device) {
  return api(__func__, [&] { require_device(device); });
}

FASIM_API hipError_t hipDeviceGet(int* device, int ordinal) {
  return api(__func__, [&] {
    require(device, "device");
    require_device(ordinal);
    *device = ordinal;
  });
}

FASIM_API hipError_t hipDeviceGetName(char* name, int length, int device) {
  return copy_text(__func__, name, length, device, Runtime::get().device.card().name);
}

FASIM_API hipError_t hipDeviceGetPCIBusId(char* id, int length, int device) {
  return copy_text(__func__, id, length, device, kPciBusId);
}

FASIM_API hipError_t hipDeviceGetByPCIBusId(int* device, const char* id) {
  return api(__func__, [&] {
    require(device, "device");
    require(id, "pciBusId");
    if (std::strcmp(id, kPciBusId) != 0)
      fail(hipErrorInvalidDevice,
           std::string("pciBusId=") + id + ", the only device is " + kPciBusId);
    *device = 0;
  });
}

FASIM_API hipError_t hipDeviceGetUuid(Uuid* uuid, int device) {
  return api(__func__, [&] {
    require(uuid, "uuid");
    require_device(device);
    PropertiesR0600 properties;
    fill(properties, Runtime::get().device.card());
    *uuid = properties.uuid;
  });
}

FASIM_API hipError_t hipDeviceComputeCapability(int* major, int* minor, int device) {
  return api(__func__, [&] {
    require(major, "major");
    require(minor, "minor");
    require_device(device);
    PropertiesR0600 properties;
    fill(properties, Runtime::get().device.card());
    *major = properties.major;
    *minor = properties.minor;
  });
}

FASIM_API hipError_t hipGetDeviceProperties(PropertiesR0000* result, int device) {
  return properties(__func__, result, device);
}

FASIM_API hipError_t hipGetDevicePropertiesR0600(PropertiesR0600* result, int device) {
  return properties(__func__, result, device);
}

FASIM_API hipError_t hipDeviceTotalMem(size_t* bytes, int device) {
  return api(__func__, [&] {
    require(bytes, "bytes");
    require_device(device);
    *bytes = Runtime::get().device.card().memory_bytes;
  });
}

FASIM_API hipError_t hipDeviceSynchronize() {
  return api(__func__, [] {});  // every call has ended when it returns
}

FASIM_API hipError_t hipDeviceReset() {
  return api(__func__, [] { Runtime::get().allocations.release_all(); });
}

FASIM_API hipError_t hipGetDeviceFlags(unsigned* flags) {
  return api(__func__, [&] {
    require(flags, "flags");
    *flags = 0;  // hipDeviceScheduleAuto
  });
}

// Scheduling and cache preferences are hints that no AMD GPU follows.
FASIM_API hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
FASIM_API hipError_t hipDeviceSetCacheConfig(int) { return hipSuccess; }
FASIM_API hipError_t hipDeviceSetSharedMemConfig(int) { return hipSuccess; }
FASIM_API hipError_t hipFuncSetCacheConfig(const void*, int) { return hipSuccess; }
FASIM_API hipError_t hipFuncSetSharedMemConfig(const void*, int) { return hipSuccess; }

FASIM_API hipError_t hipDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return api(__func__, [&] {
    require(can_access, "canAccessPeer");
    require_device(device);
    require_device(peer);
    *can_access = 0;
  });
}

}  // namespace fasim::hip
