// What a workgroup of the backward keeps in LDS, and the tiles of its products.
//
// Own rows are queries (dQ) or keys (dK and dV), the others come in blocks:
//
//              own q-side   own v-side   other q-side   other v-side
//    dQ        Q            dO           K              V
//    dK, dV    K            V            Q              dO
//
// S (or its transpose) is the product of the q-sides, dP that of the v-sides. The gradient of an
// own q-side row sums the other q-side by dS, that of an own v-side row (dV) the other v-side by P.
// Of the other side at most 256 columns are in LDS at a time.
#pragma once

#include "attention/lds_storage.h"

namespace flashattn {

// The two sides of a tile: T with the columns of one of them alone.
template <Tile T>
inline constexpr Tile kQSide = with_columns(T, T.head_dim, T.head_dim);
template <Tile T>
inline constexpr Tile kVSide = with_columns(T, T.head_dim_v, T.head_dim_v);

template <Tile Side>
inline constexpr int kParts = Side.head_dim / columns_at_once(Side.head_dim);
template <Tile Side>
inline constexpr Tile kPart =
    with_columns(Side, columns_at_once(Side.head_dim), columns_at_once(Side.head_dim));

// bf16 only: the powers of two that rows were multiplied by, inverted.
template <Tile T, Element element>
struct BwdScales {};

template <Tile T>
struct BwdScales<T, Element::bf16> {
  float own_q[T.block_m], own_v[T.block_m];
  float other_q[T.block_n], other_v[T.block_n];
};

template <Tile T, Element element>
struct BwdStorage {
  alignas(16) gcn::half own_q[T.block_m][q_pitch_halves(kQSide<T>, element)];
  alignas(16) gcn::half own_v[T.block_m][q_pitch_halves(kVSide<T>, element)];
  union {
    alignas(16) KTile<kPart<kQSide<T>>, element> other_q;
    alignas(16) KTile<kPart<kVSide<T>>, element> other_v;
    alignas(16) VTile<kPart<kQSide<T>>, element> other_q_pairs;
    alignas(16) VTile<kPart<kVSide<T>>, element> other_v_pairs;
  };
  alignas(16) PTile<T, element> weights;  // P or dS
  [[no_unique_address]] BwdScales<T, element> scales;
};

}  // namespace flashattn
