#include "runtime/hip_api.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <type_traits>

namespace flashattn {
namespace {

// Where hipDeviceProp_t has the fields that we read. R0000 is HIP 5's layout, R0600 HIP 6's and
// 7's; a larger buffer than either (792 and 1472 bytes) lets the structs grow at their end.
struct PropertiesLayout {
  size_t name;
  size_t arch_name;
  size_t compute_units;
};
constexpr PropertiesLayout kLayoutR0000 = {.name = 0, .arch_name = 396, .compute_units = 336};
constexpr PropertiesLayout kLayoutR0600 = {.name = 0, .arch_name = 1160, .compute_units = 388};
constexpr size_t kNameLength = 256;
constexpr size_t kPropertiesBuffer = 4096;

void* resolve(const HipLibrary& library, const char* symbol) {
  void* address = dlsym(library.handle, symbol);
  if (address == nullptr) {
    throw std::runtime_error("HIP runtime " + library.path + " has no symbol " + symbol +
                             "; HIP 5.2 or newer is needed");
  }
  return address;
}

std::string text_at(const char* buffer, size_t offset) {
  return {buffer + offset, strnlen(buffer + offset, kNameLength)};
}

HipApi open_backend(Backend backend) {
  HipApi api(backend == Backend::kCard ? open_card_library() : open_simulator_library());
  api.device_count();  // a backend without a device is no backend
  return api;
}

}  // namespace

const char* backend_name(Backend backend) { return backend == Backend::kCard ? "hip" : "sim"; }

HipApi::HipApi(const HipLibrary& library) : library_(library.path) {
#define FLASHATTN_RESOLVE(member, symbol, result, parameters) \
  member = reinterpret_cast<decltype(member)>(resolve(library, #symbol));
  FLASHATTN_HIP_FUNCTIONS(FLASHATTN_RESOLVE)
#undef FLASHATTN_RESOLVE
  const auto optional = [&library](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library.handle, symbol));
  };
  optional(get_device_properties_r0600_, "hipGetDevicePropertiesR0600");
  optional(sim_last_fault_, "flashattnSimLastFault");
  optional(sim_wave_instructions_, "flashattnSimWaveInstructions");
  optional(sim_register_read_only_, "flashattnSimHostRegisterReadOnly");
  optional(sim_set_timed_, "flashattnSimSetTimed");
  optional(sim_profiles_, "flashattnSimProfiles");
}

const HipApi& HipApi::get(Backend backend) {
  // A static whose initialiser throws is initialised again by the next call.
  if (backend == Backend::kCard) {
    static const HipApi card = open_backend(Backend::kCard);
    return card;
  }
  static const HipApi simulator = open_backend(Backend::kSimulator);
  return simulator;
}

std::vector<std::string> HipApi::required_symbols() {
#define FLASHATTN_NAME(member, symbol, result, parameters) #symbol,
  return {FLASHATTN_HIP_FUNCTIONS(FLASHATTN_NAME)};
#undef FLASHATTN_NAME
}

int HipApi::runtime_version() const {
  int version = 0;
  check(runtime_get_version(&version), "hipRuntimeGetVersion", "asking for the version of HIP");
  return version;
}

int HipApi::device_count() const {
  int count = 0;
  const HipStatus status = get_device_count(&count);
  if (status == kHipSuccess && count > 0) return count;
  throw HipError(status, "no AMD GPU is visible: hipGetDeviceCount returned " +
                             std::string(get_error_name(status)) + " (" + std::to_string(status) +
                             ") and " + std::to_string(count) + " devices, from " + library_ +
                             "; check rocminfo, /dev/kfd and HIP_VISIBLE_DEVICES");
}

DeviceInfo HipApi::device_info(int device) const {
  alignas(8) std::array<char, kPropertiesBuffer> buffer{};
  const bool r0600 = get_device_properties_r0600_ != nullptr;
  const PropertiesLayout layout = r0600 ? kLayoutR0600 : kLayoutR0000;
  const HipStatus status = r0600 ? get_device_properties_r0600_(buffer.data(), device)
                                 : get_device_properties(buffer.data(), device);
  check(status, "hipGetDeviceProperties", "describing device " + std::to_string(device));
  DeviceInfo info{text_at(buffer.data(), layout.name), text_at(buffer.data(), layout.arch_name), 0};
  std::memcpy(&info.compute_units, buffer.data() + layout.compute_units, sizeof(int));
  if (!info.arch.starts_with("gfx")) {
    throw std::runtime_error("device " + std::to_string(device) + " of " + library_ +
                             " reports arch \"" + info.arch +
                             "\", not a gfx name: its hipDeviceProp_t has a layout that "
                             "flashattn_rocm does not know (HIP 5 to 7 are known)");
  }
  return info;
}

void HipApi::check(HipStatus status, std::string_view call, std::string_view doing) const {
  if (status == kHipSuccess) return;
  std::string text = std::string(call) + " failed: " + get_error_name(status) + " (" +
                     std::to_string(status) + "), " + get_error_string(status) + "; while " +
                     std::string(doing);
  if (status == kHipErrorLaunchFailure && sim_last_fault_ != nullptr) {
    if (const char* fault = sim_last_fault_(); fault != nullptr) text += std::string("\n") + fault;
  }
  throw HipError(status, text);
}

HipStatus HipApi::register_read_only(void* begin, size_t bytes) const {
  if (sim_register_read_only_ == nullptr) {
    throw std::logic_error(library_ + " is no simulator: it registers no memory as read-only");
  }
  return sim_register_read_only_(begin, bytes);
}

uint64_t HipApi::simulated_wave_instructions() const {
  if (sim_wave_instructions_ == nullptr) {
    throw std::runtime_error(library_ + " is not the simulator: it counts no instructions");
  }
  return sim_wave_instructions_();
}

void HipApi::set_timed(bool timed) const {
  if (sim_set_timed_ == nullptr) {
    throw std::runtime_error(library_ + " is not a simulator that times launches");
  }
  sim_set_timed_(timed ? 1 : 0);
}

std::string HipApi::profiles() const {
  if (sim_profiles_ == nullptr) {
    throw std::runtime_error(library_ + " is not a simulator that times launches");
  }
  return sim_profiles_();
}

}  // namespace flashattn
