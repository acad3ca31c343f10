// What a kernel knows of its place: the lane, the wave, and the exact size of its workgroup.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "core/tile.h"

// Exact, not an upper bound: from the size the compiler derives how many registers a wave may
// take. Without it clang assumes up to 1024 threads and caps VGPRs at 64.
#define FLASHATTN_WORKGROUP(threads) __attribute__((amdgpu_flat_work_group_size(threads, threads)))

namespace flashattn::gcn {

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % kWaveSize; }

// lane_id() once more, by two instructions: where it would be kept in a VGPR through a loop.
__device__ inline int lane_id_anew() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)));
}

// The same in all lanes of a wave; saying so keeps what follows from it in SGPRs.
__device__ inline int wave_id() {
  return __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x) / kWaveSize);
}

// Orders LDS accesses among the lanes of one wave. LDS serves a wave's accesses in order, so the
// hardware needs nothing; the compiler must not move them across.
__device__ inline void wave_fence() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}

// All waves of the workgroup have come here, and see what the others wrote to LDS. HIP's
// __syncthreads() is the same where headers, device libraries and compiler are of one release;
// else it can become a call, which spills every register.
__device__ inline void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// No instruction moves across, in the compiler's schedule; costs nothing by itself.
__device__ inline void pin_schedule() { __builtin_amdgcn_sched_barrier(0); }

// The same in all lanes, so that a branch on it is a scalar one.
__device__ inline bool any_lane(bool x) { return __builtin_amdgcn_ballot_w64(x) != 0; }

// Computed by here: the compiler would sink a sum past a branch or a barrier to its use, and keep
// all operands of the sum in registers instead.
__device__ inline void settle(float& x) { asm volatile("" : "+v"(x)); }

// A value that is the same in all lanes, in an SGPR also where the compiler cannot know it.
__device__ inline int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }
template <class T>
__device__ inline T* uniform(T* x) {
  const auto bits = reinterpret_cast<uint64_t>(x);
  const auto low = static_cast<uint32_t>(uniform(static_cast<int>(bits)));
  const auto high = static_cast<uint32_t>(uniform(static_cast<int>(bits >> 32)));
  return reinterpret_cast<T*>(uint64_t{high} << 32 | low);
}

// The same value, of which the compiler knows nothing.
__device__ inline int opaque(int x) {
  asm volatile("" : "+v"(x));
  return x;
}

// Likewise of a value that is the same in all lanes.
__device__ inline uint32_t opaque_uniform(uint32_t x) {
  asm volatile("" : "+s"(x));
  return x;
}

// The kernel's one argument, read where it is used. By itself the compiler loads all of it at the
// kernel's start and keeps what is used late in SGPRs through all that comes between.
template <class Args>
__device__ inline const Args& kernel_argument() {
  auto* at = __builtin_amdgcn_kernarg_segment_ptr();
  asm volatile("" : "+s"(at));
  return *(const Args*)at;
}

}  // namespace flashattn::gcn
