// S = Q K^T for the rows and keys of one lane: an outer product of kRows x kKeys over LDS.
#pragma once

#include "attention/element.h"
#include "attention/lds_storage.h"
#include "gcn/wave.h"

namespace flashattn {

// Columns [0, 16) of Q and K, then the 16 after them, and so on; of fp32 half as many.
//
// Streamed: the operands of the next 8 columns are read while the current 8 are multiplied. Q is
// reloaded in place, two rows as soon as both are used; K has a second set of registers. The
// schedule is pinned after each row, or the compiler gathers the reads in one burst that the LDS
// queue cannot take (15.0 -> 16.9 simulated TFLOPS at D128). Of two rows the second goes first: its
// operand was read last, so one s_waitcnt serves both.
template <Tile T, Element E, int q_pitch>
class QkColumns {
  using L = Shape<T>;
  static constexpr bool kStreamed = T.operands == Operands::streamed;

 public:
  // Of the lane's first row of Q and its first key.
  __device__ QkColumns(const gcn::half* q, const gcn::half* k) : q_at_(q), k_at_(k) {
    if constexpr (kStreamed) read<0>(0);
  }

  template <bool last>
  __device__ void multiply16(float (&s)[L::kRows][L::kKeys]) {
    multiply8<0, true>(s);
    q_at_ += 16;
    k_at_ += 16;
    multiply8<1, !last>(s);
  }

 private:
  // Multiplies the columns at hand; streamed, also reads the 8 that follow them if there are any.
  template <int set, bool more>
  __device__ void multiply8(float (&s)[L::kRows][L::kKeys]) {
    if constexpr (!kStreamed) read<set>(set == 0 ? 0 : -8);
    constexpr int kTogether = L::kRows % 2 == 0 ? 2 : 1;
    constexpr int next = set == 0 ? 8 : 0;
#pragma unroll
    for (int first = 0; first < L::kRows; first += kTogether) {
#pragma unroll
      for (int i = first + kTogether - 1; i >= first; --i) {
        multiply_row(q_[i], k_[set], s[i]);
        if constexpr (kStreamed && more) {
          if (i == first + kTogether - 1) {
#pragma unroll
            for (int j = share(first); j < share(first + kTogether); ++j)
              k_[1 - set][j] = k8(j, next);
          }
          if (i == first) {
#pragma unroll
            for (int row = first; row < first + kTogether; ++row) q_[row] = q8(row, next);
          }
        }
        if constexpr (kStreamed) gcn::pin_schedule();
      }
    }
  }

  // Keys are read evenly along the rows.
  __device__ static constexpr int share(int row) { return row * L::kKeys / L::kRows; }

  __device__ static void multiply_row(const gcn::half8& q, const gcn::half8 (&k)[L::kKeys],
                                      float (&s)[L::kKeys]) {
#pragma unroll
    for (int word = 0; word < 4; ++word)
#pragma unroll
      for (int j = 0; j < L::kKeys; ++j)
        s[j] = multiply_add<E>(__builtin_bit_cast(gcn::pairs4, q)[word],
                               __builtin_bit_cast(gcn::pairs4, k[j])[word], s[j]);
  }

  template <int set>
  __device__ void read(int col) {
#pragma unroll
    for (int j = 0; j < L::kKeys; ++j) k_[set][j] = k8(j, col);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i) q_[i] = q8(i, col);
  }

  __device__ gcn::half8 q8(int i, int col) const {
    return lds_read<gcn::half8>(q_at_ + i * kGroups * q_pitch + col);
  }
  __device__ gcn::half8 k8(int j, int col) const {
    return lds_read<gcn::half8>(k_at_ + j * kGroupLanes * k_pitch_halves(T, E) + col);
  }

  const gcn::half* q_at_;
  const gcn::half* k_at_;
  gcn::half8 q_[L::kRows];
  gcn::half8 k_[2][L::kKeys];
};

// Adds all head_dim columns of the lane's rows and keys, whose first ones are `q` and `k` in LDS. Q
// may have more columns than these: `q_pitch` is from row to row.
template <Tile T, Element E, int q_pitch = q_pitch_halves(T, E)>
__device__ inline void add_outer_product(const gcn::half* q, const gcn::half* k,
                                         float (&s)[Shape<T>::kRows][Shape<T>::kKeys]) {
  QkColumns<T, E, q_pitch> columns(q, k);
#pragma unroll 1
  for (int col = 0; col + 16 < T.head_dim * halves_of(E); col += 16)
    columns.template multiply16<false>(s);
  columns.template multiply16<true>(s);
}

template <int rows, int keys>
__device__ inline void clear(float (&s)[rows][keys]) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < keys; ++j) s[i][j] = 0.0f;
}

template <Tile T, Element E>
__device__ inline void score_block(const LdsStorage<T, E>& lds, int first_row, int lane_in_group,
                                   float (&s)[Shape<T>::kRows][Shape<T>::kKeys]) {
  clear(s);
  add_outer_product<T, E>(&lds.q[first_row][0], &lds.kv.k[lane_in_group][0], s);
}

}  // namespace flashattn
