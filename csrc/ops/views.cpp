#include "ops/views.h"

#include <ATen/ops/empty_like.h>

namespace flashattn {
namespace {

constexpr int64_t kDword = 4;        // what a 16-byte access must be aligned to in global memory
constexpr int64_t kChunkBytes = 16;  // of a row at a time
// A tile of at most 256 rows is addressed by 31 bits.
constexpr int64_t kMaxRowBytes = int64_t{1} << 22;

// Inputs are never written, but kernels and HIP take plain pointers. const_data_ptr keeps a lazily
// copied (copy-on-write) tensor uncopied.
void* base_of(const at::Tensor& tensor) { return const_cast<void*>(tensor.const_data_ptr()); }

int64_t used_stride(const at::Tensor& tensor, int64_t dim) {
  return tensor.size(dim) > 1 ? tensor.stride(dim) : 0;
}

}  // namespace

TensorView view_of(const at::Tensor& tensor) {
  const bool packed = tensor.dim() == 3;
  return {.data = base_of(tensor),
          .batch_stride = packed ? 0 : used_stride(tensor, 0),
          .row_stride = used_stride(tensor, tensor.dim() - 3),
          .head_stride = used_stride(tensor, tensor.dim() - 2)};
}

std::optional<Element> element_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return Element::f16;
    case at::kBFloat16:
      return Element::bf16;
    case at::kFloat:
      return Element::f32;
    default:
      return std::nullopt;
  }
}

const char* name_of(Element element) {
  return element == Element::f16 ? "f16" : element == Element::bf16 ? "bf16" : "f32";
}

bool has_rows_of_chunks(const at::Tensor& tensor) {
  const auto item = static_cast<int64_t>(tensor.element_size());
  if (tensor.size(-1) * item % kChunkBytes != 0) return false;
  if (reinterpret_cast<uintptr_t>(base_of(tensor)) % kDword != 0) return false;
  for (int64_t dim = 0; dim < tensor.dim() - 1; ++dim) {
    if (used_stride(tensor, dim) * item % kDword != 0) return false;
  }
  const int64_t row = used_stride(tensor, tensor.dim() - 3) * item;
  return row >= 0 && row <= kMaxRowBytes;
}

at::Tensor empty_in_layout_of(const at::Tensor& tensor) {
  at::Tensor result = at::empty_like(tensor);
  return result.sym_stride(-1) == 1 ? result : at::empty_like(tensor, at::MemoryFormat::Contiguous);
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
