// Checked copies and fills: the part of hipMemcpy and hipMemset that all their variants share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fasim::hip {

struct CopyRows {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;  // bytes of a row
  size_t height;
};

// `kind` is a MemcpyKind. Throws ApiFailure for a bad kind, a null pointer, a side that should be
// device memory and is not, and for a copy that leaves its allocation.
void copy(void* dst, const void* src, size_t size, int kind);
void copy_rows(const CopyRows& rows, int kind);

// Writes `count` times the lowest element_size (1, 2, 4) bytes of `value`.
void fill_memory(void* dst, uint32_t value, size_t element_size, size_t count);

}  // namespace fasim::hip
