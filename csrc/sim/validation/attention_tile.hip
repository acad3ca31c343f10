// The shape of llama.cpp's prefill attention tile for 32 query columns, of which hardware counters
// were published at head dim 256: 8 half waves of 4 columns each, 32 keys a step, one LDS buffer
// that K (128 columns at a time) and V (16 keys at a time) pass through, probabilities through LDS,
// fp16 sums for O. Written from that description; the scheduling is the compiler's. A step has the
// published 512 dot2, 528 packed, 208 LDS reads, 9 barriers and 27,136 bytes of LDS.
//
// Two older forms of it give the published gains: LDS accesses of 4 bytes in place of 16, and
// products in fp16 that are widened and added in place of v_dot2_f32_f16.
#include "kernel.h"

namespace {

constexpr int kKeys = 32, kColumns = 32;
constexpr int kHalfWave = 32, kHalfWaves = 256 / kHalfWave;
constexpr int kLaneColumns = kColumns / kHalfWaves;  // query columns of a half wave
constexpr int kSeq = 4096;                           // keys that the mask has a row for

template <int kHalves>
using Halves = _Float16 __attribute__((ext_vector_type(kHalves)));

// One access of a whole vector, which clang would split if it saw the array of scalars behind `p`.
template <class Vector, class Scalar>
__device__ Vector load(const Scalar* p) {
  return *reinterpret_cast<const Vector*>(p);
}
template <class Vector, class Scalar>
__device__ void store(Scalar* p, const Vector& value) {
  *reinterpret_cast<Vector*>(p) = value;
}

struct Dot2 {
  static __device__ float add(half2_t a, half2_t b, float sum) {
    return __builtin_amdgcn_fdot2(a, b, sum, false);
  }
};
struct WidenedProducts {
  static __device__ float add(half2_t a, half2_t b, float sum) {
    const half2_t product = a * b;
    return sum + (static_cast<float>(product.x) + static_cast<float>(product.y));
  }
};

// LDS is accessed `kHalves` at a time, and rows are padded by one such access. Probabilities are
// kept as `P`, those of a key's columns side by side. `kSpent` VALU instructions a step do nothing.
template <int kHeadDim, class Product, int kHalves, class P, int kSpent = 0>
struct Tile {
  static constexpr int kLaneDims = kHeadDim / kHalfWave;  // of O, for each of a lane's columns
  // What of K, and of V, is in LDS at a time.
  static constexpr int kChunkDims = kHeadDim < 128 ? kHeadDim : 128;
  static constexpr int kChunkKeys = kKeys * kChunkDims / kHeadDim;
  static constexpr int kPitch = kChunkDims + kHalves;
  static constexpr int kKeysOfRead = sizeof(P) == 2 ? 2 : 1;  // 16 bytes of probabilities
  using Vector = Halves<kHalves>;

  struct Lds {
    alignas(16) _Float16 q[kColumns * kHeadDim];
    alignas(16) _Float16 kv[kKeys * kPitch];
    alignas(16) P p[kHalfWaves * kKeys * kLaneColumns];
  };
  static_assert(kLaneDims % kHalves == 0);

  Lds& lds;
  const int lane = threadIdx.x % kHalfWave, half_wave = threadIdx.x / kHalfWave;
  float score[kLaneColumns], maximum[kLaneColumns], sum[kLaneColumns];
  half2_t o[kLaneColumns][kLaneDims / 2];

  // Rows of `kDims` halves at `source`, kHeadDim apart, into rows of `pitch`.
  template <int kRows, int kDims>
  __device__ void stage(const _Float16* source, _Float16* target, int pitch) {
    constexpr int kLoads = kRows * kDims / (256 * 8);
    Halves<8> loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = (i * 256 + static_cast<int>(threadIdx.x)) * 8;
      loaded[i] = load<Halves<8>>(source + at / kDims * kHeadDim + at % kDims);
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = (i * 256 + static_cast<int>(threadIdx.x)) * 8;
      _Float16* const to = target + at / kDims * pitch + at % kDims;
      const auto* const from = reinterpret_cast<const _Float16*>(&loaded[i]);
#pragma unroll
      for (int n = 0; n < 8; n += kHalves) store(to + n, load<Vector>(from + n));
    }
  }

  // Lane l scores key l against its half wave's columns.
  __device__ void add_scores(int first_dim) {
#pragma unroll
    for (int d = 0; d < kChunkDims; d += kHalves) {
      const auto k = load<Vector>(&lds.kv[lane * kPitch + d]);
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        const int column = half_wave * kLaneColumns + c;
        const auto q = load<Vector>(&lds.q[column * kHeadDim + first_dim + d]);
#pragma unroll
        for (int i = 0; i < kHalves; i += 2) {
          score[c] = Product::add({k[i], k[i + 1]}, {q[i], q[i + 1]}, score[c]);
        }
      }
    }
  }

  // Two heads share a mask row; online softmax over the half wave.
  __device__ void softmax(const _Float16* mask) {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      score[c] += static_cast<float>(mask[c / 2 * kSeq + lane]);
      float most = fmaxf(maximum[c], score[c]);
#pragma unroll
      for (int step = kHalfWave / 2; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor(most, step, kHalfWave));
      }
      const float scale = __expf(maximum[c] - most);
      const float p = __expf(score[c] - most);
      maximum[c] = most;
      sum[c] = sum[c] * scale + p;
      score[c] = p;
      const half2_t both = {static_cast<_Float16>(scale), static_cast<_Float16>(scale)};
#pragma unroll
      for (half2_t& pair : o[c]) pair *= both;
    }
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      lds.p[(half_wave * kKeys + lane) * kLaneColumns + c] = static_cast<P>(score[c]);
    }
  }

  __device__ void add_values(int first_key) {
    constexpr int kGroups = kLaneDims / kHalves;  // of a lane's dims that lie together
    using Probabilities = P __attribute__((ext_vector_type(kKeysOfRead * kLaneColumns)));
#pragma unroll
    for (int key = 0; key < kChunkKeys; key += kKeysOfRead) {
      const int row = half_wave * kKeys + first_key + key;
      const auto p = load<Probabilities>(&lds.p[row * kLaneColumns]);
#pragma unroll
      for (int n = 0; n < kKeysOfRead; ++n) {
        Vector v[kGroups];
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
          const int dim = (g * kHalfWave + lane) * kHalves;
          v[g] = load<Vector>(&lds.kv[(key + n) * kHeadDim + dim]);
        }
#pragma unroll
        for (int c = 0; c < kLaneColumns; ++c) {
          const auto one = static_cast<_Float16>(p[n * kLaneColumns + c]);
#pragma unroll
          for (int i = 0; i < kLaneDims; i += 2) {
            const Vector& pair = v[i / kHalves];
            o[c][i / 2] = __builtin_elementwise_fma(
                half2_t{pair[i % kHalves], pair[i % kHalves + 1]}, half2_t{one, one}, o[c][i / 2]);
          }
        }
      }
    }
  }

  __device__ void run(const _Float16* in, _Float16* out, uint32_t iterations) {
    uint32_t index = threadIdx.x;
    const _Float16* k = in;
    const _Float16* v = in + (4 << 20);
    const _Float16* mask = in + (8 << 20) + blockIdx.x % 128 * 2 * kSeq;
    stage<kColumns, kHeadDim>(in + (16 << 20) + blockIdx.x % 128 * kColumns * kHeadDim, lds.q,
                              kHeadDim);
    for (int c = 0; c < kLaneColumns; ++c) {
      maximum[c] = -1e30f, sum[c] = 0;
      for (half2_t& pair : o[c]) pair = {0, 0};
    }
#pragma unroll 1
    for (uint32_t n = 0; n < iterations; ++n) {
#pragma unroll
      for (int i = 0; i < kSpent; ++i) spend_valu(index);
      for (float& s : score) s = 0;
#pragma unroll
      for (int dim = 0; dim < kHeadDim; dim += kChunkDims) {
        stage<kKeys, kChunkDims>(k + dim, lds.kv, kPitch);
        __syncthreads();
        add_scores(dim);
        __syncthreads();
      }
      softmax(mask);
      __syncthreads();
#pragma unroll
      for (int key = 0; key < kKeys; key += kChunkKeys) {
        stage<kChunkKeys, kHeadDim>(v + key * kHeadDim, lds.kv, kHeadDim);
        __syncthreads();
        add_values(key);
        __syncthreads();
      }
      k += kKeys * kHeadDim, v += kKeys * kHeadDim, mask += kKeys;
    }
    for (int c = 0; c < kLaneColumns; ++c) {
      auto* const row = reinterpret_cast<half2_t*>(out + (blockIdx.x * kColumns + c) * kHeadDim);
      const auto by = static_cast<_Float16>(1 / sum[c]);
      for (int i = 0; i < kLaneDims / 2; ++i) row[i * kHalfWave + lane] = o[c][i] * half2_t{by, by};
    }
  }
};

}  // namespace

#define ATTENTION_KERNEL(name, ...)                                                          \
  TILE_KERNEL name(PARAMETERS) {                                                             \
    using Kernel = Tile<__VA_ARGS__>;                                                        \
    __shared__ Kernel::Lds lds;                                                              \
    Kernel{lds}.run(reinterpret_cast<const _Float16*>(in), reinterpret_cast<_Float16*>(out), \
                    iterations);                                                             \
  }

// The published step has 288 VALU instructions beside dot2 and packed ones (bounds, addresses of
// any layout); this one needs 130.
ATTENTION_KERNEL(attention_d256_counted, 256, Dot2, 8, _Float16, 158)
ATTENTION_KERNEL(attention_d256, 256, Dot2, 8, _Float16)
ATTENTION_KERNEL(attention_d256_narrow, 256, Dot2, 2, float)
ATTENTION_KERNEL(attention_d256_widened, 256, WidenedProducts, 2, float)
ATTENTION_KERNEL(attention_d64_narrow, 64, Dot2, 2, float)
ATTENTION_KERNEL(attention_d64_widened, 64, WidenedProducts, 2, float)
