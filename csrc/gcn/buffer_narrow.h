// Buffer loads of less than 16 bytes (buffer_io.h has those, and what a resource is).
#pragma once

#include "gcn/buffer_io.h"
#include "gcn/vec.h"

namespace flashattn::gcn {

__device__ pairs2 raw_buffer_load_b64(BufferResource, int offset, int uniform_offset,
                                      int aux) __asm("llvm.amdgcn.raw.buffer.load.v2i32");
__device__ float raw_buffer_load_f32(BufferResource, int offset, int uniform_offset,
                                     int aux) __asm("llvm.amdgcn.raw.buffer.load.f32");

__device__ inline pairs2 load_bytes8(const BufferResource& from, int offset, int uniform_offset) {
  return raw_buffer_load_b64(from, offset, uniform_offset, 0);
}
__device__ inline float load_float(const BufferResource& from, int offset, int uniform_offset = 0) {
  return raw_buffer_load_f32(from, offset, uniform_offset, 0);
}

}  // namespace flashattn::gcn
