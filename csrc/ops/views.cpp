#include "ops/views.h"

namespace flashattn {
namespace {

constexpr int64_t kVectorBytes = 16;

// Inputs are never written, but kernels and HIP take plain pointers. const_data_ptr keeps a lazily
// copied (copy-on-write) tensor uncopied.
void* base_of(const at::Tensor& tensor) { return const_cast<void*>(tensor.const_data_ptr()); }

int64_t used_stride(const at::Tensor& tensor, int64_t dim) {
  return tensor.size(dim) > 1 ? tensor.stride(dim) : 0;
}

}  // namespace

TensorView view_of(const at::Tensor& tensor) {
  return {.data = base_of(tensor),
          .batch_stride = used_stride(tensor, 0),
          .row_stride = used_stride(tensor, 1),
          .head_stride = used_stride(tensor, 2)};
}

bool rows_are_16_byte_aligned(const at::Tensor& tensor) {
  const auto item = static_cast<int64_t>(tensor.element_size());
  if (reinterpret_cast<uintptr_t>(base_of(tensor)) % kVectorBytes != 0) return false;
  for (int64_t dim = 0; dim < 3; ++dim) {
    if (used_stride(tensor, dim) * item % kVectorBytes != 0) return false;
  }
  return true;
}

ByteRange byte_extent(const at::Tensor& tensor) {
  auto* const begin = static_cast<std::byte*>(base_of(tensor));
  if (tensor.numel() == 0) return {begin, begin};
  int64_t last_element = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last_element += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  return {begin, begin + (last_element + 1) * static_cast<int64_t>(tensor.element_size())};
}

}  // namespace flashattn
