// O += P V for the rows and columns of one lane. P goes through LDS, inside the wave that owns its
// rows, because there each lane needs all keys of a row.
#pragma once

#include "attention/element.h"
#include "attention/lds_storage.h"
#include "gcn/wave.h"

namespace flashattn {

// Stores the probabilities of keys [part * p_keys, (part + 1) * p_keys).
template <Tile T, Element E>
__device__ inline void store_p(
    PTile<T, E>& to, int first_row, int lane_in_group, int part,
    const uint32_t (&p)[Shape<T>::kRows][Shape<T>::kKeys / per_word(E)]) {
  constexpr int kPartWords = T.p_keys / per_word(E) / kGroupLanes;  // of one lane
#pragma unroll
  for (int i = 0; i < Shape<T>::kRows; ++i)
#pragma unroll
    for (int j = 0; j < kPartWords; ++j)
      to[first_row + i * kGroups][lane_in_group + j * kGroupLanes] = p[i][part * kPartWords + j];
  gcn::wave_fence();
}

// Pairs [0, 4) of P and V from `first_pair` on, then the 4 after them, and so on; of fp32 not pairs
// of keys, but keys.
//
// A unit is a pair of keys and a stripe of columns: kRows x 4 products. Streamed: while one unit is
// multiplied the V of the unit kAhead later and a share of the next 4 pairs of P are read.
template <Tile T, Element E>
class PvPairs {
  using L = Shape<T>;
  using Columns = Stripes<T>;
  static constexpr bool kStreamed = T.operands == Operands::streamed;
  static constexpr int kUnits = 4 * Columns::kCount;
  static constexpr int kRing = 4, kAhead = kStreamed ? 3 : 0;
  static_assert(kUnits % kRing == 0);

 public:
  // Of the lane's first row of P and the first pair of keys of V.
  __device__ PvPairs(const uint32_t* first_p, const uint32_t* first_v, int lane_in_group)
      : p_at_(first_p), v_at_(first_v), lane_in_group_(lane_in_group) {
    if constexpr (kStreamed) {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) p_[0][i] = p4(i, 0);
      static_for<kAhead>([&](auto unit) { v_[unit] = v<unit>(); });
    }
  }

  template <bool last>
  __device__ void multiply8(float (&o)[L::kRows][L::kCols]) {
    multiply4<0, true>(o);
    multiply4<1, !last>(o);
  }

 private:
  template <int set, bool more>
  __device__ void multiply4(float (&o)[L::kRows][L::kCols]) {
    if constexpr (!kStreamed) {
#pragma unroll
      for (int i = 0; i < L::kRows; ++i) p_[set][i] = p4(i, 0);
    }
    static_for<kUnits>([&](auto unit) {
      if constexpr (!kStreamed || more || unit + kAhead < kUnits)
        v_[(unit + kAhead) % kRing] = v<unit + kAhead>();
      if constexpr (kStreamed && more) {
#pragma unroll
        for (int i = share(unit); i < share(unit + 1); ++i) p_[1 - set][i] = p4(i, 4);
      }
      multiply_unit<unit>(p_[set], v_[unit % kRing], o);
      if constexpr (kStreamed) gcn::pin_schedule();
    });
    p_at_ += 4;
    v_at_ += 4 * v_pitch_words(T);
  }

  // Rows of P are read evenly along the units.
  __device__ static constexpr int share(int unit) { return unit * L::kRows / kUnits; }

  template <int unit>
  __device__ static void multiply_unit(const gcn::pairs4 (&p)[L::kRows], const gcn::pairs4& v,
                                       float (&o)[L::kRows][L::kCols]) {
    constexpr Stripe stripe = Columns::at(unit % Columns::kCount);
#pragma unroll
    for (int i = 0; i < L::kRows; ++i)
#pragma unroll
      for (int c = 0; c < stripe.width; ++c) {
        float& acc = o[i][stripe.first + c];
        acc = multiply_add<E>(p[i][unit / Columns::kCount], v[c], acc);
      }
  }

  __device__ gcn::pairs4 p4(int i, int pair) const {
    return lds_read<gcn::pairs4>(p_at_ + i * kGroups * p_pitch_words(T, E) + pair);
  }

  template <int unit>
  __device__ gcn::pairs4 v() const {
    constexpr Stripe stripe = Columns::at(unit % Columns::kCount);
    const uint32_t* at =
        v_at_ + unit / Columns::kCount * v_pitch_words(T) + Columns::column(stripe, lane_in_group_);
    if constexpr (stripe.width == 4) {
      return lds_read<gcn::pairs4>(at);
    } else if constexpr (stripe.width == 2) {
      const auto two = lds_read<gcn::pairs2>(at);
      return {two[0], two[1], 0, 0};
    } else {
      return {*at, 0, 0, 0};
    }
  }

  const uint32_t* p_at_;
  const uint32_t* v_at_;
  int lane_in_group_;
  gcn::pairs4 p_[2][L::kRows];
  gcn::pairs4 v_[kRing];
};

// The part of P that is in LDS; V has all keys of the block.
template <Tile T, Element E>
__device__ inline void accumulate_pv(const PTile<T, E>& p, const VTile<T, E>& v, int first_row,
                                     int lane_in_group, int part,
                                     float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
  constexpr int kPairs = T.p_keys / per_word(E);
  PvPairs<T, E> pairs(&p[first_row][0], &v[part * kPairs][0], lane_in_group);
#pragma unroll 1
  for (int pair = 0; pair + 8 < kPairs; pair += 8) pairs.template multiply8<false>(o);
  pairs.template multiply8<true>(o);
  gcn::wave_fence();
}

// The same where what a row of P has no share in does not reach it, not even as 0 times NaN. Slow.
template <Tile T, Element E>
__device__ inline void accumulate_pv_zero_wins(const PTile<T, E>& p, const VTile<T, E>& v,
                                               int first_row, int lane_in_group, int part,
                                               float (&o)[Shape<T>::kRows][Shape<T>::kCols]) {
  constexpr int kPairs = T.p_keys / per_word(E);
#pragma unroll 1
  for (int pair = 0; pair < kPairs; ++pair) {
    const uint32_t* const of_pair = &v[part * kPairs + pair][0];
    static_for<Stripes<T>::kCount>([&](auto s) {
      constexpr Stripe stripe = Stripes<T>::at(s);
      const int column = Stripes<T>::column(stripe, lane_in_group);
#pragma unroll
      for (int i = 0; i < Shape<T>::kRows; ++i)
#pragma unroll
        for (int c = 0; c < stripe.width; ++c)
          multiply_add_zero_wins<E>(p[first_row + i * kGroups][pair], of_pair[column + c],
                                    o[i][stripe.first + c]);
    });
  }
  gcn::wave_fence();
}

}  // namespace flashattn
