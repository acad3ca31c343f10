// What a workgroup keeps in LDS. Sizes and pitches are those of core/lds_budget.h.
#pragma once

#include "attention/shape.h"
#include "core/lds_budget.h"
#include "gcn/vec.h"

namespace flashattn {

template <Tile T>
struct LdsStorage {
  alignas(16) gcn::half q[T.block_m][q_pitch_halves(T)];
  alignas(16) gcn::half k[T.block_n][k_pitch_halves(T)];
  alignas(16) uint32_t v[T.block_n / 2][v_pitch_pairs(T)];  // (key, key + 16) of one column
  alignas(16) uint32_t p[T.block_m][p_pitch_pairs(T)];      // (key, key + 16) of one row

  __device__ gcn::half8 q8(int row, int col) const { return read<gcn::half8>(&q[row][col]); }
  __device__ gcn::half8 k8(int key, int col) const { return read<gcn::half8>(&k[key][col]); }
  __device__ gcn::pairs4 p4(int row, int pair) const { return read<gcn::pairs4>(&p[row][pair]); }

  template <class Vec>
  __device__ static Vec read(const void* src) {
    return *reinterpret_cast<const Vec*>(src);
  }
  template <class Vec>
  __device__ static void write(void* dst, Vec x) {
    *reinterpret_cast<Vec*>(dst) = x;
  }
};

}  // namespace flashattn
