// One kernel for each published figure of an instruction, a cache level or the memory.
//
// Inline assembly pins the instruction that a figure is about; the loops around it are the
// compiler's. Where a publication does not show its loop, the comment says what was assumed.
#include "kernel.h"

namespace {

constexpr int kUnroll = 64;
constexpr int kChains = 8;

__device__ uint32_t thread() { return blockIdx.x * 256 + threadIdx.x; }

}  // namespace

// `kUnroll` of one instruction per iteration, on `kChains` accumulators of `type`.
#define CHAIN_KERNEL(name, type, text)                                \
  KERNEL name(PARAMETERS) {                                           \
    type sum[kChains];                                                \
    for (int i = 0; i < kChains; ++i) sum[i] = type(threadIdx.x + i); \
    type x = sum[1], y = sum[2];                                      \
    for (uint32_t n = 0; n < iterations; ++n) {                       \
      _Pragma("unroll") for (int i = 0; i < kUnroll; ++i) {           \
        asm volatile(text : "+v"(sum[i % kChains]) : "v"(x), "v"(y)); \
      }                                                               \
    }                                                                 \
    for (int i = 0; i < kChains; ++i) keep(sum[i]);                   \
  }

CHAIN_KERNEL(fma_f32, float, "v_fma_f32 %0, %1, %2, %0")
CHAIN_KERNEL(fma_half2, uint32_t, "v_pk_fma_f16 %0, %1, %2, %0")
CHAIN_KERNEL(fma_f64, double, "v_fma_f64 %0, %1, %2, %0")
CHAIN_KERNEL(mad_i24, uint32_t, "v_mad_i32_i24 %0, %1, %2, %0")
CHAIN_KERNEL(mad_i32, uint32_t, "v_mul_lo_u32 %0, %1, %0\n\tv_add_u32 %0, %2, %0")
CHAIN_KERNEL(exp_f32, float, "v_exp_f32 %0, %0")

// Loops that are not unrolled, with one VALU instruction beside the dots: the published rates of
// one chain (41 % of peak) and of four (81-83 %) both say that about one slot per iteration was
// spent on something else.
#define DOT_KERNEL(name, chains, text)                                     \
  KERNEL name(PARAMETERS) {                                                \
    uint32_t sum[chains], x = threadIdx.x, y = threadIdx.x + 1, index = 0; \
    for (int i = 0; i < chains; ++i) sum[i] = i;                           \
    _Pragma("unroll 1") for (uint32_t n = 0; n < iterations; ++n) {        \
      spend_valu(index);                                                   \
      _Pragma("unroll") for (int i = 0; i < chains; ++i) {                 \
        asm volatile(text : "+v"(sum[i]) : "v"(x), "v"(y));                \
      }                                                                    \
    }                                                                      \
    for (int i = 0; i < chains; ++i) keep(sum[i]);                         \
  }

DOT_KERNEL(dot2_reuse, 4, "v_dot2_f32_f16 %0, %1, %2, %0")
DOT_KERNEL(dot4_chain, 1, "v_dot4_i32_i8 %0, %1, %2, %0")
DOT_KERNEL(dot4_ilp4, 4, "v_dot4_i32_i8 %0, %1, %2, %0")
DOT_KERNEL(dot8_ilp4, 4, "v_dot8_i32_i4 %0, %1, %2, %0")

// Eight multiply-adds per iteration with fp32 inputs that change every time: as fp32, through
// fp16 and dot2, and through int8 and dot4. The rest of the published loop is not known; its
// length (10 VALU instructions) was set by the fp32 figure and is the same for all three.
namespace {
constexpr int kHotLoopRest = 10;

template <class Body>
__device__ void hot_loop(uint32_t iterations, Body body) {
  uint32_t index = threadIdx.x;
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<float>(threadIdx.x + i);
#pragma unroll 1
  for (uint32_t n = 0; n < iterations; ++n) {
#pragma unroll
    for (int i = 0; i < kHotLoopRest; ++i) spend_valu(index);
    for (int i = 0; i < 8; ++i) asm volatile("" : "+v"(x[i]));
    body(x);
  }
}
}  // namespace

KERNEL hot_fma(PARAMETERS) {
  float sum = 0;
  const float y = static_cast<float>(threadIdx.x);
  hot_loop(iterations, [&](float(&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = __builtin_fmaf(x[i], y, sum);
  });
  keep(sum);
}

KERNEL hot_dot2(PARAMETERS) {
  float sum = 0;
  const half2_t y = {1, 2};
  hot_loop(iterations, [&](float(&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const half2_t pair = {static_cast<_Float16>(x[i]), static_cast<_Float16>(x[i + 1])};
      sum = __builtin_amdgcn_fdot2(pair, y, sum, false);
    }
  });
  keep(sum);
}

KERNEL hot_dot4(PARAMETERS) {
  float sum = 0;
  const float scale = static_cast<float>(threadIdx.x);
  hot_loop(iterations, [&](float(&x)[8]) {
    int total = 0;
#pragma unroll
    for (int half = 0; half < 8; half += 4) {
      uint32_t packed = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int q = static_cast<int>(__builtin_rintf(x[half + i] * scale));
        packed |= static_cast<uint32_t>(max(-127, min(127, q)) & 0xff) << (8 * i);
      }
      total = __builtin_amdgcn_sdot4(static_cast<int>(packed), 0x01020304, total, false);
    }
    sum += static_cast<float>(total) * scale;
  });
  keep(sum);
}

// ---- Global memory --------------------------------------------------------------------------

namespace {
// Every workgroup reads its own part of `in` once, four loads in flight.
template <class T>
__device__ void read_once(const float* in, uint32_t iterations) {
  const T* source =
      reinterpret_cast<const T*>(in) + size_t{blockIdx.x} * iterations * 1024 + threadIdx.x;
  for (uint32_t n = 0; n < iterations; ++n, source += 1024) {
    T value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = source[256 * i];
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(value[i]);
  }
}
}  // namespace

KERNEL read_dword(PARAMETERS) { read_once<float>(in, iterations); }
KERNEL read_dwordx4(PARAMETERS) { read_once<float4_t>(in, iterations); }

KERNEL copy_dwordx4(PARAMETERS) {
  const size_t first = size_t{blockIdx.x} * iterations * 1024 + threadIdx.x;
  const float4_t* source = reinterpret_cast<const float4_t*>(in) + first;
  float4_t* target = reinterpret_cast<float4_t*>(out) + first;
  for (uint32_t n = 0; n < iterations; ++n, source += 1024, target += 1024) {
    float4_t value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = source[256 * i];
#pragma unroll
    for (int i = 0; i < 4; ++i) target[256 * i] = value[i];
  }
}

// Two-byte elements, a pair of loads in flight.
KERNEL read_half(PARAMETERS) {
  const auto* source =
      reinterpret_cast<const uint16_t*>(in) + size_t{blockIdx.x} * iterations * 512 + threadIdx.x;
  for (uint32_t n = 0; n < iterations; ++n, source += 512) {
    const uint32_t first = source[0], second = source[256];
    keep(first), keep(second);
  }
}

// 2 MiB that stay in L2 and not in L1; workgroups start at different places.
KERNEL read_l2(PARAMETERS) {
  const float4_t* source = reinterpret_cast<const float4_t*>(in);
  uint32_t at = blockIdx.x * 4352 + threadIdx.x;
  for (uint32_t n = 0; n < iterations; ++n, at += 1024) {
    float4_t value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = source[(at + 256 * i) & 0x1ffff];
#pragma unroll
    for (int i = 0; i < 4; ++i) keep(value[i]);
  }
}

// Filling a KV cache of 32 heads, 128 dims, seq 4096: consecutive threads take a row's dims, the
// next row belongs to the next token. [head][dim][seq] puts neighbouring lanes 16 KiB apart, and a
// dwordx4 then holds four tokens; [head][seq][dim] is contiguous.
namespace {
constexpr uint32_t kSeq = 4096, kDim = 128;

template <class T>
__device__ void write_head_dim_seq(float* out, uint32_t iterations) {
  constexpr uint32_t kTokens = sizeof(T) / 4;
  for (uint32_t n = 0; n < iterations; ++n) {
    const uint32_t token = ((n * gridDim.x + blockIdx.x) * 2 + threadIdx.x / kDim) * kTokens;
    const uint32_t row = token / kSeq * kDim + threadIdx.x % kDim;
    *reinterpret_cast<T*>(out + row * kSeq + token % kSeq) = T(1);
  }
}

template <class T>
__device__ void write_head_seq_dim(float* out, uint32_t iterations) {
  for (uint32_t n = 0; n < iterations; ++n) {
    reinterpret_cast<T*>(out)[(n * gridDim.x + blockIdx.x) * 256 + threadIdx.x] = T(1);
  }
}
}  // namespace

// Reading K of a decode step from 2 MiB of [head][dim][seq], which L2 holds: lanes take the dims of
// four tokens, the next iteration takes the next four.
KERNEL read_hds_dwordx4(PARAMETERS) {
  constexpr uint32_t kTokens = 32;  // 128 dims x 4096 tokens
  const float4_t* source = reinterpret_cast<const float4_t*>(in) + threadIdx.x % kDim * (kSeq / 4);
  uint32_t at = (blockIdx.x * 2 + threadIdx.x / kDim) * kTokens;
  for (uint32_t n = 0; n < iterations; ++n, ++at) keep(source[at % (kSeq / 4)]);
}

KERNEL write_hds_dword(PARAMETERS) { write_head_dim_seq<float>(out, iterations); }
KERNEL write_hds_dwordx4(PARAMETERS) { write_head_dim_seq<float4_t>(out, iterations); }
KERNEL write_hsd_dwordx4(PARAMETERS) { write_head_seq_dim<float4_t>(out, iterations); }

// Loads that hit L1: 16 in flight, of `type`, at a byte offset per lane. 4 KiB are touched.
#define L1_KERNEL(name, opcode, type, offset)                                \
  KERNEL name(PARAMETERS) {                                                  \
    const uint32_t lane = threadIdx.x & 63;                                  \
    const char* address = reinterpret_cast<const char*>(in) + (offset);      \
    type value[8];                                                           \
    for (uint32_t n = 0; n < iterations; ++n) {                              \
      _Pragma("unroll") for (int i = 0; i < 8; ++i) {                        \
        asm volatile(opcode " %0, %1, off" : "=v"(value[i]) : "v"(address)); \
      }                                                                      \
      asm volatile("s_waitcnt vmcnt(0)" ::: "memory");                       \
    }                                                                        \
    for (int i = 0; i < 8; ++i) keep(value[i]);                              \
  }

namespace {
// A fixed permutation of the 64 lanes' elements, spread over 4 KiB.
__device__ uint32_t scattered(uint32_t lane) { return (lane * 29 + 17) % 64 * 64; }
}  // namespace

L1_KERNEL(l1_linear_x1, "global_load_dword", float, lane * 4)
L1_KERNEL(l1_linear_x2, "global_load_dwordx2", float2_t, lane * 8)
L1_KERNEL(l1_linear_x3, "global_load_dwordx3", float3_t, lane * 12)
L1_KERNEL(l1_linear_x4, "global_load_dwordx4", float4_t, lane * 16)
L1_KERNEL(l1_uniform_x1, "global_load_dword", float, 0 * lane)
L1_KERNEL(l1_uniform_x4, "global_load_dwordx4", float4_t, 0 * lane)
L1_KERNEL(l1_random_x1, "global_load_dword", float, scattered(lane))
L1_KERNEL(l1_random_x3, "global_load_dwordx3", float3_t, scattered(lane))
L1_KERNEL(l1_random_x4, "global_load_dwordx4", float4_t, scattered(lane))

// ---- LDS ------------------------------------------------------------------------------------

// A stream of read and write. The published loops are not shown. Their b32 and b64 forms took
// nearly the same time per pair (13.6 and 12 clocks of a CU), so both were bound by the VALU: 12
// instructions a pair, set by the b64 figure.
#define LDS_STREAM_KERNEL(name, read, write, type)                          \
  KERNEL name(PARAMETERS) {                                                 \
    __shared__ type tile[512];                                              \
    const uint32_t at = static_cast<uint32_t>(threadIdx.x * sizeof(type));  \
    tile[threadIdx.x] = tile[threadIdx.x + 256] = type(0);                  \
    __syncthreads();                                                        \
    uint32_t index = threadIdx.x;                                           \
    for (uint32_t n = 0; n < iterations; ++n) {                             \
      type value[4];                                                        \
      _Pragma("unroll") for (int i = 0; i < 4; ++i) {                       \
        asm volatile(read " %0, %1" : "=v"(value[i]) : "v"(at) : "memory"); \
        _Pragma("unroll") for (int k = 0; k < 12; ++k) spend_valu(index);   \
      }                                                                     \
      asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");                    \
      _Pragma("unroll") for (int i = 0; i < 4; ++i) {                       \
        asm volatile(write " %0, %1" ::"v"(at), "v"(value[i]) : "memory");  \
      }                                                                     \
    }                                                                       \
    keep(tile[threadIdx.x]);                                                \
  }

LDS_STREAM_KERNEL(lds_stream_b32, "ds_read_b32", "ds_write_b32", float)
LDS_STREAM_KERNEL(lds_stream_b64, "ds_read_b64", "ds_write_b64", float2_t)
LDS_STREAM_KERNEL(lds_stream_b128, "ds_read_b128", "ds_write_b128", float4_t)

// b128 reads of a column: lane l reads row l, rows `pitch` float4 apart. 24 VALU instructions a
// read, set by the contiguous figure, which is far below what LDS can do (41 of 128 bytes a clock).
#define LDS_COLUMN_KERNEL(name, pitch)                                                \
  KERNEL name(PARAMETERS) {                                                           \
    __shared__ float4_t tile[64 * (pitch)];                                           \
    for (uint32_t i = threadIdx.x; i < 64 * (pitch); i += 256) tile[i] = float4_t(0); \
    __syncthreads();                                                                  \
    const uint32_t at = (threadIdx.x & 63) * (pitch) * 16;                            \
    uint32_t index = threadIdx.x;                                                     \
    for (uint32_t n = 0; n < iterations; ++n) {                                       \
      float4_t value[4];                                                              \
      _Pragma("unroll") for (int i = 0; i < 4; ++i) {                                 \
        asm volatile("ds_read_b128 %0, %1" : "=v"(value[i]) : "v"(at) : "memory");    \
        _Pragma("unroll") for (int k = 0; k < 24; ++k) spend_valu(index);             \
      }                                                                               \
      asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");                              \
      for (int i = 0; i < 4; ++i) keep(value[i]);                                     \
    }                                                                                 \
    keep(tile[threadIdx.x & 63]);                                                     \
  }

LDS_COLUMN_KERNEL(lds_contiguous, 1)
LDS_COLUMN_KERNEL(lds_column_32, 32)
LDS_COLUMN_KERNEL(lds_column_33, 33)

// ---- Exchange between lanes -----------------------------------------------------------------

// The value received is used (one add) and the sum changes what is sent next (one xor).
KERNEL exchange_dpp(PARAMETERS) {
  int value = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (uint32_t n = 0; n < iterations; ++n) {
    int got;  // as update_dpp(0, ...) is lowered: clang would fold it into the add
    asm volatile(
        "v_mov_b32 %0, 0\n\ts_nop 1\n\tv_mov_b32_dpp %0, %1 row_shr:1 row_mask:0xf bank_mask:0xf"
        : "=&v"(got)
        : "v"(value));
    value = (value + got) ^ static_cast<int>(n);
  }
  keep(value);
}

KERNEL exchange_bpermute(PARAMETERS) {
  int value = static_cast<int>(threadIdx.x);
  const int from = static_cast<int>((threadIdx.x ^ 1) * 4);
#pragma unroll 1
  for (uint32_t n = 0; n < iterations; ++n) {
    const int got = __builtin_amdgcn_ds_bpermute(from, value);
    value = (value + got) ^ static_cast<int>(n);
  }
  keep(value);
}

KERNEL exchange_lds(PARAMETERS) {
  __shared__ int tile[256];
  int value = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (uint32_t n = 0; n < iterations; ++n) {
    tile[threadIdx.x] = value;
    __syncthreads();
    const int got = tile[threadIdx.x ^ 1];
    __syncthreads();
    value = (value + got) ^ static_cast<int>(n);
  }
  keep(value);
}

// ---- Occupancy ------------------------------------------------------------------------------

// A kernel that needs `count` VGPRs and does nothing: only what fits on a SIMD is asked.
#define OCCUPANCY_KERNEL(count, last) \
  KERNEL occupancy_##count(PARAMETERS) { asm volatile("v_mov_b32 " last ", 0" ::: last); }

OCCUPANCY_KERNEL(24, "v23")
OCCUPANCY_KERNEL(28, "v27")
OCCUPANCY_KERNEL(32, "v31")
OCCUPANCY_KERNEL(36, "v35")
OCCUPANCY_KERNEL(40, "v39")
OCCUPANCY_KERNEL(48, "v47")
OCCUPANCY_KERNEL(64, "v63")
OCCUPANCY_KERNEL(84, "v83")
OCCUPANCY_KERNEL(128, "v127")
OCCUPANCY_KERNEL(256, "v255")
