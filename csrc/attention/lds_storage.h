// What a workgroup keeps in LDS. Sizes and pitches are those of core/lds_budget.h.
#pragma once

#include "attention/shape.h"
#include "core/lds_budget.h"
#include "gcn/vec.h"

namespace flashattn {

template <Tile T, Element element>
using KTile = gcn::half[T.block_n][k_pitch_halves(T, element)];

// (key, key + 16) of one column, or one number of fp32.
template <Tile T, Element element>
using VTile = uint32_t[T.block_n / per_word(element)][v_pitch_words(T)];

template <Tile T, Element element>
using PTile = uint32_t[T.block_m][p_pitch_words(T, element)];  // as in V, of one row

template <Tile T, Element element, KvBuffers kv>
struct KvStorage {
  alignas(16) KTile<T, element> k;
  alignas(16) VTile<T, element> v;
};

template <Tile T, Element element>
struct KvStorage<T, element, KvBuffers::in_turns> {
  union {
    alignas(16) KTile<T, element> k;
    alignas(16) VTile<T, element> v;
  };
};

// bf16 only: powers of two that rows were multiplied by, inverted, and the largest exponents of V.
template <Tile T, Element element>
struct ScaleStorage {};

template <Tile T>
struct ScaleStorage<T, Element::bf16> {
  float q_scale[T.block_m];
  float k_scale[T.block_n];
  alignas(16) uint32_t v_largest[4];  // of a block, of the next one; the rest is padding
};

template <Tile T, Element element>
struct LdsStorage {
  alignas(16) gcn::half q[T.block_m][q_pitch_halves(T, element)];
  KvStorage<T, element, T.kv> kv;
  alignas(16) PTile<T, element> p;
  [[no_unique_address]] ScaleStorage<T, element> scales;
};

template <class Vec>
__device__ inline Vec lds_read(const void* src) {
  return *reinterpret_cast<const Vec*>(src);
}
template <class Vec>
__device__ inline void lds_write(void* dst, Vec x) {
  *reinterpret_cast<Vec*>(dst) = x;
}

}  // namespace flashattn
