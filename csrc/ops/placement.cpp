#include "ops/placement.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace flashattn {
namespace {

constexpr const char* kBackendVariable = "FLASHATTN_ROCM_BACKEND";
constexpr int kSimulatedDevice = 0;

// The variable never moves a tensor elsewhere; it turns the other backend into an error.
void check_backend_allowed(const at::Tensor& tensor, Backend backend) {
  const char* value = std::getenv(kBackendVariable);
  const std::string_view wanted = value == nullptr ? "auto" : value;
  TORCH_CHECK_VALUE(wanted == "auto" || wanted == "hip" || wanted == "sim", kBackendVariable, "=",
                    std::string(wanted), " is unknown; allowed are auto, hip and sim");
  TORCH_CHECK_VALUE(wanted == "auto" || wanted == backend_name(backend), kBackendVariable, "=",
                    std::string(wanted), ", but q is on ", tensor.device(), ": ",
                    wanted == "hip" ? "hip (a card) serves tensors on cuda only"
                                    : "sim (the simulated card) serves tensors on cpu only");
}

// torch's C interface for compiled models, in every ROCm torch since 2.2. c10::Stream can give the
// hipStream_t too (native_handle), but only from torch 2.12 on.
using GetCurrentStream = int32_t (*)(int32_t device_index, void** stream);

GetCurrentStream find_get_current_stream() {
  void* torch_hip = dlopen("libtorch_hip.so", RTLD_NOW | RTLD_NOLOAD);
  TORCH_CHECK(torch_hip != nullptr, "libtorch_hip.so is not loaded: this torch is no ROCm build");
  void* found = dlsym(torch_hip, "aoti_torch_get_current_cuda_stream");
  TORCH_CHECK(found != nullptr,
              "libtorch_hip.so has no aoti_torch_get_current_cuda_stream; torch 2.7 or newer is "
              "needed");
  return reinterpret_cast<GetCurrentStream>(found);
}

HipStream current_stream(at::Device device) {
  static const GetCurrentStream get_current_stream = find_get_current_stream();
  HipStream stream = nullptr;
  const int32_t status = get_current_stream(device.index(), &stream);
  TORCH_CHECK(status == 0, "torch gave no current stream for ", device, " (error ", status, ")");
  return stream;
}

}  // namespace

Placement placement_of(const at::Tensor& tensor) {
  const Backend backend = tensor.is_cuda() ? Backend::kCard : Backend::kSimulator;
  check_backend_allowed(tensor, backend);
  const HipApi& api = HipApi::get(backend);
  if (backend == Backend::kSimulator) return {backend, api, kSimulatedDevice, nullptr};
  return {backend, api, tensor.device().index(), current_stream(tensor.device())};
}

const DeviceInfo& device_info(const Placement& place) {
  static std::mutex mutex;
  static std::map<std::pair<Backend, int>, DeviceInfo> known;
  const std::lock_guard lock(mutex);
  const std::pair key(place.backend, place.device);
  auto found = known.find(key);
  if (found == known.end()) {
    found = known.emplace(key, place.api.device_info(place.device)).first;
  }
  return found->second;
}

}  // namespace flashattn
