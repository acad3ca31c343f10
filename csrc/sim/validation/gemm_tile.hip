// Matrix products by the usual tile of 128 x 128 outputs: 256 threads of 8 x 8 each, panels of A
// (transposed) and B through LDS, the next panels on their way in registers.
#include "kernel.h"

namespace {

constexpr int kTile = 128, kSize = 4096;
constexpr int kDepth = 8;  // words of K in LDS at a time
constexpr int kGrid = 16;  // tiles of a row that are computed side by side

// `Word` is what lies in a dword of LDS: one float, or the pair of halves that dot2 multiplies.
struct Floats {
  using Word = float;
  static __device__ float add(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }
};
struct HalfPairs {
  using Word = half2_t;
  static __device__ float add(half2_t a, half2_t b, float sum) {
    return __builtin_amdgcn_fdot2(a, b, sum, false);
  }
};

template <class Kind>
struct Gemm {
  using Word = typename Kind::Word;
  static constexpr int kPanel = kDepth * kTile;
  static constexpr int kLoads = kPanel / (256 * 4);

  struct Lds {
    alignas(16) Word a[2][kPanel], b[2][kPanel];
  };

  Lds& lds;
  const uint32_t thread = threadIdx.x;
  float4_t loaded_a[kLoads], loaded_b[kLoads];
  float sum[8][8];

  // A and B are stored by rows of K: kSize words each.
  __device__ void fetch(const float* a, const float* b) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const uint32_t at = (i * 256 + thread) * 4;
      const uint32_t offset = at / kTile * kSize + at % kTile;
      loaded_a[i] = *reinterpret_cast<const float4_t*>(a + offset);
      loaded_b[i] = *reinterpret_cast<const float4_t*>(b + offset);
    }
  }
  __device__ void store(int half) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const uint32_t at = (i * 256 + thread) * 4;
      put(&lds.a[half][at], loaded_a[i]);
      put(&lds.b[half][at], loaded_b[i]);
    }
  }
  static __device__ void put(Word* to, const float4_t& value) {
    *reinterpret_cast<float4_t*>(to) = value;
  }
  // Four neighbouring words, and the four that are half a tile further.
  static __device__ void get(const Word* from, Word (&to)[8]) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const auto four = *reinterpret_cast<const float4_t*>(from + part * kTile / 2);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[part * 4 + i] = __builtin_bit_cast(Word, four[i]);
    }
  }
  __device__ void multiply(int half) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      Word a[8], b[8];
      get(&lds.a[half][k * kTile + thread / 16 * 4], a);
      get(&lds.b[half][k * kTile + thread % 16 * 4], b);
#pragma unroll
      for (int m = 0; m < 8; ++m) {
#pragma unroll
        for (int n = 0; n < 8; ++n) sum[m][n] = Kind::add(a[m], b[n], sum[m][n]);
      }
    }
  }

  __device__ void run(const float* in, float* out, uint32_t iterations) {
    const float* a = in + blockIdx.x % kGrid * kTile;
    const float* b = in + (2 << 20) + blockIdx.x / kGrid * kTile;
    for (auto& row : sum) {
      for (float& s : row) s = 0;
    }
    fetch(a, b);
    store(0);
    __syncthreads();
#pragma unroll 1
    for (uint32_t n = 0; n < iterations; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        a += kDepth * kSize, b += kDepth * kSize;
        fetch(a, b);
        multiply(half);
        store(1 - half);
        __syncthreads();
      }
    }
    float* c = out + size_t{blockIdx.x} * kTile * kTile + thread;
#pragma unroll
    for (int i = 0; i < 64; ++i) c[i * 256] = sum[i / 8][i % 8];
  }
};

}  // namespace

TILE_KERNEL gemm_f32(PARAMETERS) {
  __shared__ Gemm<Floats>::Lds lds;
  Gemm<Floats>{lds}.run(in, out, iterations);
}
TILE_KERNEL gemm_dot2(PARAMETERS) {
  __shared__ Gemm<HalfPairs>::Lds lds;
  Gemm<HalfPairs>{lds}.run(in, out, iterations);
}
