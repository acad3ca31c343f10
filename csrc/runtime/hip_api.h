// The HIP functions that we call, looked up at run time. No HIP header is needed to build, and the
// process keeps the one HIP runtime that ROCm torch has already loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/hip_library.h"

namespace flashattn {

using HipStatus = int;
using HipModule = struct HipModuleHandle*;
using HipFunction = struct HipFunctionHandle*;
using HipStream = void*;

inline constexpr HipStatus kHipSuccess = 0;
inline constexpr HipStatus kHipErrorNoBinaryForGpu = 209;
inline constexpr HipStatus kHipErrorLaunchFailure = 719;

// Column 1: member of HipApi. Column 2: symbol. Then result and parameters. All of them exist with
// these signatures in every HIP from 5.2 (Debian 12) on; the tests resolve them in a real library.
#define FLASHATTN_HIP_FUNCTIONS(ROW)                                                      \
  ROW(get_error_name, hipGetErrorName, const char*, (HipStatus))                          \
  ROW(get_error_string, hipGetErrorString, const char*, (HipStatus))                      \
  ROW(runtime_get_version, hipRuntimeGetVersion, HipStatus, (int*))                       \
  ROW(get_device_count, hipGetDeviceCount, HipStatus, (int*))                             \
  ROW(get_device_properties, hipGetDeviceProperties, HipStatus, (void*, int))             \
  ROW(module_load_data, hipModuleLoadData, HipStatus, (HipModule*, const void*))          \
  ROW(module_get_function, hipModuleGetFunction, HipStatus,                               \
      (HipFunction*, HipModule, const char*))                                             \
  ROW(module_launch_kernel, hipModuleLaunchKernel, HipStatus,                             \
      (HipFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
       HipStream, void**, void**))                                                        \
  ROW(host_register, hipHostRegister, HipStatus, (void*, size_t, unsigned))               \
  ROW(host_unregister, hipHostUnregister, HipStatus, (void*))

// Where a call runs. Decided by the tensors: cuda (ROCm torch) is the card, cpu the simulator.
enum class Backend { kCard, kSimulator };

const char* backend_name(Backend backend);  // "hip", "sim": the values of FLASHATTN_ROCM_BACKEND

// A HIP call that did not return hipSuccess; what() has the call, HIP's name and text for the code,
// and what we were doing.
class HipError : public std::runtime_error {
 public:
  HipError(HipStatus status, const std::string& text) : std::runtime_error(text), status_(status) {}
  HipStatus status() const { return status_; }

 private:
  HipStatus status_;
};

struct DeviceInfo {
  std::string name;
  std::string arch;  // gcnArchName with its feature suffixes, e.g. gfx906:sramecc+:xnack-
  int compute_units;

  std::string base_arch() const { return arch.substr(0, arch.find(':')); }
};

class HipApi {
 public:
  // The library of a backend, opened on the first call. Throws std::runtime_error that says which
  // library was tried and what is missing; a later call tries again.
  static const HipApi& get(Backend backend);

  // Any HIP library, with every symbol resolved; does not ask for a device.
  explicit HipApi(const HipLibrary& library);

  // The symbols that a library must have.
  static std::vector<std::string> required_symbols();

  const std::string& library() const { return library_; }  // full path
  int runtime_version() const;                             // as hipRuntimeGetVersion counts
  int device_count() const;                                // at least 1, else throws
  DeviceInfo device_info(int device) const;

  // Throws HipError unless status is hipSuccess.
  void check(HipStatus status, std::string_view call, std::string_view doing) const;

  // Makes host memory visible to kernels on the simulator, which fault if they write to it. A card
  // has no such call; cpu tensors never go there.
  HipStatus register_read_only(void* begin, size_t bytes) const;

  // Wave instructions executed since the simulator was loaded; throws on a card.
  uint64_t simulated_wave_instructions() const;

  // Whether the simulator times the launches that follow (slower, same results); throws on a card.
  void set_timed(bool timed) const;

  // The simulator's profiles of the launches since set_timed(true), a JSON list; throws on a card.
  std::string profiles() const;

#define FLASHATTN_MEMBER(member, symbol, result, parameters) result(*member) parameters = nullptr;
  FLASHATTN_HIP_FUNCTIONS(FLASHATTN_MEMBER)
#undef FLASHATTN_MEMBER

 private:
  std::string library_;
  // Present from HIP 6 on, where hipGetDeviceProperties keeps the old layout for old programs.
  HipStatus (*get_device_properties_r0600_)(void*, int) = nullptr;
  const char* (*sim_last_fault_)() = nullptr;
  uint64_t (*sim_wave_instructions_)() = nullptr;
  HipStatus (*sim_register_read_only_)(void*, size_t) = nullptr;
  void (*sim_set_timed_)(int) = nullptr;
  const char* (*sim_profiles_)() = nullptr;
};

}  // namespace flashattn
