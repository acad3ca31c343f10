// Global memory -> registers -> LDS, for the resident Q tile and the streamed K and V tiles.
// Rows past the end of the sequence become zeros: what an earlier kernel left in LDS, or lies
// behind the tensor, never meets a multiplication.
#pragma once

#include "attention/lds_storage.h"
#include "gcn/global_io.h"
#include "gcn/vec.h"

namespace flashattn {

// 8 halves, 16 bytes: what one lane moves at once.
inline constexpr int kChunk = 8;

// Rows of one head, bounded by its sequence.
struct Rows {
  const gcn::half* base;
  int64_t row_stride;
  int count;
  bool aligned;

  __device__ gcn::half8 load8(int row, int col) const {
    if (row >= count) return gcn::half8{};
    return gcn::load8(base + row * row_stride + col, aligned);
  }
};

template <Tile T>
__device__ inline void stage_q(LdsStorage<T>& lds, const Rows& q, int first_row) {
  constexpr int kRowChunks = T.head_dim / kChunk;
  for (int i = threadIdx.x; i < T.block_m * kRowChunks; i += T.threads()) {
    const int row = i / kRowChunks, col = i % kRowChunks * kChunk;
    lds.template write<gcn::half8>(&lds.q[row][col], q.load8(first_row + row, col));
  }
}

// One K tile and one V tile on their way: load() starts the reads of the next block, store()
// puts them into LDS once no wave reads the current block any more.
template <Tile T>
class KvInFlight {
 public:
  __device__ void load(const Rows& k, const Rows& v, int first_key) {
#pragma unroll
    for (int i = 0; i < kKChunks; ++i) {
      const int chunk = threadIdx.x + i * T.threads();
      if (kKWhole || chunk < kKTotal)
        k_[i] = k.load8(first_key + chunk / kRowChunks, chunk % kRowChunks * kChunk);
    }
#pragma unroll
    for (int i = 0; i < kVChunks; ++i) {
      const int chunk = threadIdx.x + i * T.threads();
      if (!kVWhole && chunk >= kVTotal) continue;
      const int key = first_key + first_key_of_pair(chunk / kRowChunks);
      const int col = chunk % kRowChunks * kChunk;
      v_[i][0] = v.load8(key, col);
      v_[i][1] = v.load8(key + kGroupLanes, col);
    }
  }

  __device__ void store(LdsStorage<T>& lds) const {
#pragma unroll
    for (int i = 0; i < kKChunks; ++i) {
      const int chunk = threadIdx.x + i * T.threads();
      if (kKWhole || chunk < kKTotal)
        lds.template write<gcn::half8>(&lds.k[chunk / kRowChunks][chunk % kRowChunks * kChunk],
                                       k_[i]);
    }
#pragma unroll
    for (int i = 0; i < kVChunks; ++i) {
      const int chunk = threadIdx.x + i * T.threads();
      if (!kVWhole && chunk >= kVTotal) continue;
      uint32_t* dst = &lds.v[chunk / kRowChunks][chunk % kRowChunks * kChunk];
      lds.template write<gcn::pairs4>(dst, interleave(v_[i], 0));
      lds.template write<gcn::pairs4>(dst + 4, interleave(v_[i], 4));
    }
  }

 private:
  static constexpr int kRowChunks = T.head_dim / kChunk;
  static constexpr int kKTotal = T.block_n * kRowChunks;
  static constexpr int kVTotal = T.block_n / 2 * kRowChunks;
  static constexpr int kKChunks = (kKTotal + T.threads() - 1) / T.threads();
  static constexpr int kVChunks = (kVTotal + T.threads() - 1) / T.threads();
  static constexpr bool kKWhole = kKTotal % T.threads() == 0;
  static constexpr bool kVWhole = kVTotal % T.threads() == 0;

  // Two rows of V side by side become pairs along the keys, four columns at a time.
  __device__ static gcn::pairs4 interleave(const gcn::half8 (&rows)[2], int col) {
    gcn::pairs4 x;
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = gcn::as_bits({rows[0][col + i], rows[1][col + i]});
    return x;
  }

  gcn::half8 k_[kKChunks];
  gcn::half8 v_[kVChunks][2];
};

}  // namespace flashattn
