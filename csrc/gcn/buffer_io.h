// Global memory through a buffer resource: 64-bit base in SGPRs, 32-bit offsets, and a size past
// which loads return zeros and stores vanish, without a compare or a branch.
// Vega 7nm ISA, sections 8.1.5 "Buffer resource" and 8.1.6 "Range checking".
#pragma once

#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn::gcn {

using BufferResource = int32_t __attribute__((ext_vector_type(4)));

// The compiler's own names; the builtins for them came with clang 19.
__device__ pairs4 raw_buffer_load_b128(BufferResource, int offset, int uniform_offset,
                                       int aux) __asm("llvm.amdgcn.raw.buffer.load.v4i32");

// Raw (stride 0): the offset is in bytes and is compared with `bytes`. Both arguments are the same
// in all lanes. Said aloud, because of a load through a resource that it has in VGPRs the compiler
// makes a loop over lanes, 13 instructions a turn, and before LLVM 18 one that forgets SCC
// (llvm-project#68363).
__device__ inline BufferResource buffer(const void* base, uint32_t bytes) {
  constexpr int kData32 = 4 << 15;  // word 3: DATA_FORMAT 32, all else as the loads want it
  const auto address = reinterpret_cast<uint64_t>(base);
  return {uniform(static_cast<int32_t>(address)), uniform(static_cast<int32_t>(address >> 32)),
          uniform(static_cast<int32_t>(bytes)), kData32};
}

__device__ inline half8 load8(const BufferResource& from, int offset, int uniform_offset) {
  return __builtin_bit_cast(half8, raw_buffer_load_b128(from, offset, uniform_offset, 0));
}

}  // namespace flashattn::gcn
