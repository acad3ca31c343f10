// What a ROCm torch adds to torch as far as the op looks at it: cuda tensors, a device guard and a
// current stream for each device. Memory is the host's.
#include <torch/extension.h>

#include <c10/core/impl/DeviceGuardImplInterface.h>

extern "C" int hipSetDevice(int device);
extern "C" int hipGetDevice(int* device);

// The name under which libtorch_hip exports it.
extern "C" __attribute__((visibility("default"))) int32_t
aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream) {
  *stream = reinterpret_cast<void*>(uintptr_t{0x1000} + static_cast<uintptr_t>(device_index));
  return 0;
}

namespace {

c10::Device cuda(int index) {
  return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)};
}

int current_device() {
  int device = -1;
  hipGetDevice(&device);
  return device;
}

struct GuardDouble final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return cuda(current_device()); }
  void setDevice(c10::Device device) const override { hipSetDevice(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    hipSetDevice(device.index());
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
};
C10_REGISTER_GUARD_IMPL(CUDA, GuardDouble);

// A tensor that says cuda, over the memory of a cpu tensor.
at::Tensor to_card(const at::Tensor& host, int index) {
  auto* keep = new at::Tensor(host.clone());
  c10::DataPtr data(
      keep->mutable_data_ptr(), keep, [](void* kept) { delete static_cast<at::Tensor*>(kept); },
      cuda(index));
  c10::Storage storage(c10::Storage::use_byte_size_t(), keep->nbytes(), std::move(data));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), host.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(keep->sizes(), keep->strides());
  return tensor;
}

using MaybeType = std::optional<at::ScalarType>;
using MaybeLayout = std::optional<at::Layout>;
using MaybeDevice = std::optional<c10::Device>;
using MaybeBool = std::optional<bool>;

at::Tensor empty(at::IntArrayRef sizes, MaybeType dtype, MaybeLayout, MaybeDevice device, MaybeBool,
                 std::optional<at::MemoryFormat>) {
  return to_card(at::empty(sizes, at::dtype(*dtype)), device->index());
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, MaybeType dtype,
                         MaybeLayout, MaybeDevice device, MaybeBool) {
  return to_card(at::empty_strided(sizes, strides, at::dtype(*dtype)), device->index());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("to_card", &to_card);
  m.def("current_device", &current_device);
}
