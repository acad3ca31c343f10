// From a tensor to what a kernel gets of it: base, strides, alignment; the bytes it covers; results
// laid out like it.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "core/fwd_args.h"
#include "core/tile.h"
#include "runtime/host_memory.h"

namespace flashattn {

// A (batch, seqlen, heads, head_dim) tensor, or a packed one without batch. Strides of sizes up to
// 1 are given as 0: torch leaves them at any value, and no kernel may need them.
TensorView view_of(const at::Tensor& tensor);

// What kernels call a dtype; nothing for one that none of them takes.
std::optional<Element> element_of(at::ScalarType type);

// As names of kernels end.
const char* name_of(Element element);

// Rows may be moved by 16 bytes: they are multiples of that, every one begins at a multiple of 4,
// and a tile of them spans less than 2^31 bytes.
bool has_rows_of_chunks(const at::Tensor& tensor);

// Uninitialised, with the sizes and the layout of the tensor, as upstream's results; contiguous
// where that would not leave the last dimension so (views whose elements overlap).
at::Tensor empty_in_layout_of(const at::Tensor& tensor);

// From the first byte of the first element to the last byte of the last one in memory.
ByteRange byte_extent(const at::Tensor& tensor);

}  // namespace flashattn
