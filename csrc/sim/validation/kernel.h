// What the kernels of this folder share: they are timed on the simulated card and held against
// published figures (flashattn_rocm/sim/published.toml). Only gfx906.
#pragma once

#include <hip/hip_runtime.h>

// A kernel of workgroups of 256, for `iterations` rounds of its loop. The second form leaves room
// for two workgroups a CU.
#define KERNEL extern "C" __global__ __launch_bounds__(256) void
#define TILE_KERNEL extern "C" __global__ __launch_bounds__(256, 2) void
#define PARAMETERS const float* __restrict__ in, float* __restrict__ out, uint32_t iterations

typedef _Float16 half2_t __attribute__((ext_vector_type(2)));
typedef float float2_t __attribute__((ext_vector_type(2)));
typedef float float3_t __attribute__((ext_vector_type(3)));
typedef float float4_t __attribute__((ext_vector_type(4)));

// Keeps a value alive without a store in the timed path.
template <class T>
__device__ void keep(const T& value) {
  asm volatile("" ::"v"(value));
}

// One more VALU slot, of the kind that a loop spends on indices.
__device__ inline void spend_valu(uint32_t& value) {
  asm volatile("v_add_u32 %0, 1, %0" : "+v"(value));
}
