// One of the two sides of the backward's products (bwd_storage.h): a block of the other side's rows
// on its way to LDS, its products with own rows, and the gradient of own rows that sums it.
#pragma once

#include "attention/bwd_storage.h"
#include "attention/gradient_output.h"
#include "attention/pv.h"
#include "attention/qk.h"
#include "attention/tile_io.h"
#include "gcn/wave.h"

namespace flashattn {

template <class F, int rows, int columns>
__device__ inline void for_each(float (&x)[rows][columns], F f) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) f(x[i][j], i, j);
}

template <Tile T, Tile Side, Element E>
class BwdSide {
  using L = Shape<T>;
  static constexpr Tile P = kPart<Side>;
  static constexpr int kPartHalves = P.head_dim * halves_of(E);

 public:
  static constexpr int kParts = flashattn::kParts<Side>;
  using Products = float[L::kRows][L::kKeys];
  using Weights = uint32_t[L::kRows][L::kKeys / per_word(E)];  // as operands
  using Sums = float[L::kRows][Shape<P>::kCols];               // of a part of the columns

  __device__ __forceinline__ void clear_sums() {
#pragma unroll
    for (auto& part : sums_) clear(part);
  }
  __device__ Sums (&sums())[kParts] { return sums_; }

  // Rows of a block to registers. Nothing is read if there is no such block, but the registers are
  // written, as in the forward.
  __device__ __forceinline__ void load(const Rows& rows, int block, bool exists) {
    block_.load(rows, block * T.block_n, exists);
  }

  // bf16: the registers; the powers of two that undo it to LDS.
  __device__ __forceinline__ void normalise(float (&scale)[T.block_n]) { block_.normalise(scale); }

  // To a tile of LDS that holds a part of the columns: by rows or, of 16 bits, by pairs of rows.
  template <int part, class To>
  __device__ __forceinline__ void store(To& to) const {
    block_.template store<part * kPartHalves, kPartHalves>(to);
  }

  // Rows and lanes are opaque here and below: addresses that follow from them would be kept through
  // the whole step, in registers that are not there.
  template <int part, class Own>
  __device__ static void multiply(const Own& own, const KTile<P, E>& other, int tile_row, int lane,
                                  Products& products) {
    add_outer_product<P, E, q_pitch_halves(Side, E)>(
        &own[gcn::opaque(tile_row)][part * kPartHalves], &other[gcn::opaque(lane)][0], products);
    for_each(products, [](float& x, int, int) { gcn::settle(x); });
  }

  // `spoils`: there may be NaN and inf, from which weights of 0 are kept.
  template <int part>
  __device__ __forceinline__ void accumulate(const Weights& weights, const VTile<P, E>& other,
                                             PTile<T, E>& weight_tile, int tile_row, int lane,
                                             bool spoils) {
    Sums& sums = sums_[part];
    if constexpr (E == Element::f32) {
      Sums block;  // a sum of sums, as in the forward
      clear(block);
      add_products(weights, other, weight_tile, tile_row, lane, spoils, block);
      for_each(sums, [&](float& x, int i, int c) { x += block[i][c]; });
    } else {
      add_products(weights, other, weight_tile, tile_row, lane, spoils, sums);
    }
    for_each(sums, [](float& x, int, int) { gcn::settle(x); });
  }

  // Own rows first_row + 4 i of the gradient, each times its factor.
  __device__ __forceinline__ void store_sums(Rows to, int first_row, int lane,
                                             const float (&factor)[L::kRows]) const {
    static_for<kParts>([&](auto part) {
      flashattn::store_sums<P, E>(to, first_row, lane, sums_[part], factor);
      to.base += kPartHalves;
      to.columns -= kPartHalves;
    });
  }

 private:
  __device__ __forceinline__ static void add_products(const Weights& weights,
                                                      const VTile<P, E>& other,
                                                      PTile<T, E>& weight_tile, int tile_row,
                                                      int lane, bool spoils, Sums& sums) {
    // Not a loop to unroll: where dot2 is several instructions (gfx900) the compiler would not.
    static_for<T.block_n / T.p_keys>([&](auto part) {
      const int row = gcn::opaque(tile_row), column = gcn::opaque(lane);
      store_p<T, E>(weight_tile, row, column, part, weights);
      if (spoils)
        accumulate_pv_zero_wins<P, E>(weight_tile, other, row, column, part, sums);
      else
        accumulate_pv<P, E>(weight_tile, other, row, column, part, sums);
    });
  }

  VInFlight<Side, E> block_;
  Sums sums_[kParts];
};

}  // namespace flashattn
