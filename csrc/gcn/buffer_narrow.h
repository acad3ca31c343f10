// Buffer loads of less than 16 bytes, and of any width that is a chunk's (buffer_io.h says what a
// resource is).
#pragma once

#include "gcn/buffer_io.h"
#include "gcn/vec.h"

namespace flashattn::gcn {

__device__ pairs2 raw_buffer_load_b64(BufferResource, int offset, int uniform_offset,
                                      int aux) __asm("llvm.amdgcn.raw.buffer.load.v2i32");
__device__ float raw_buffer_load_f32(BufferResource, int offset, int uniform_offset,
                                     int aux) __asm("llvm.amdgcn.raw.buffer.load.f32");

__device__ inline float load_float(const BufferResource& from, int offset, int uniform_offset = 0) {
  return raw_buffer_load_f32(from, offset, uniform_offset, 0);
}

// T of 4, 8 or 16 bytes by one instruction.
template <class T>
__device__ inline T load_words(const BufferResource& from, int offset, int uniform_offset) {
  if constexpr (sizeof(T) == 16)
    return __builtin_bit_cast(T, raw_buffer_load_b128(from, offset, uniform_offset, 0));
  else if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, raw_buffer_load_b64(from, offset, uniform_offset, 0));
  else
    return __builtin_bit_cast(T, load_float(from, offset, uniform_offset));
}

}  // namespace flashattn::gcn
