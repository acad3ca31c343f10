// Which probabilities are dropped. That follows from the seed and from where a score is (batch
// item, head, row, key) and from nothing of the tile: forward and backward agree whatever theirs
// are.
//
// One call of Philox serves 4 rows 4 apart and 2 keys 16 apart, 16 bits each; these a lane of the
// forward holds together (shape.h), the two keys as one pair of fp16.
//
//   key:     seed, its upper word xored with the upper word of offset
//   counter: { key / 32 * 16 + key % 16,  row / 16 * 4 + row % 4,  batch * heads_q + head,
//              lower word of offset }
//   result:  word row / 4 % 4; of it the lower half for keys with key / 16 % 2 == 0, else the upper
//
// Rows and keys are counted in their sequence. A probability is dropped iff its 16 bits are below
// Dropout::drop.
#pragma once

#include "attention/shape.h"
#include "core/fwd_args.h"
#include "gcn/dpp.h"
#include "gcn/philox.h"
#include "gcn/scalar_io.h"
#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn {

class DropoutMask {
 public:
  static constexpr int kRowStep = 4;   // of the rows of one call,
  static constexpr int kKeyStep = 16;  // of its keys
  static constexpr int kRows = 4;      // and how many rows

  // `batch` counts sequences.
  __device__ DropoutMask(const Dropout& args, int batch, int head_q)
      : drop_(args.drop),
        batch_head_(args.first_head + static_cast<uint32_t>(batch) * args.batch_stride +
                    static_cast<uint32_t>(head_q)),
        seed_(gcn::load_scalar(args.rng_state)),
        offset_(gcn::load_scalar(args.rng_state + 1)) {}

  // Word i: the bits of row + 4 i, of `key` in its lower half and of key + 16 in its upper one.
  // `row` is below 4 in its 16 rows, `key` below 16 in its 32 keys, or word and half are others.
  __device__ gcn::pairs4 words(int row, int key) const {
    const auto r = static_cast<uint32_t>(row), k = static_cast<uint32_t>(key);
    const uint64_t cipher_key = seed_ ^ (offset_ & 0xffffffff00000000);
    // Opaque, or 20 round keys are kept in SGPRs from one call to the next.
    return gcn::philox4x32_10(
        {k / 32 * 16 + k % 16, r / 16 * 4 + r % 4, batch_head_, static_cast<uint32_t>(offset_)},
        gcn::opaque_uniform(static_cast<uint32_t>(cipher_key)),
        gcn::opaque_uniform(static_cast<uint32_t>(cipher_key >> 32)));
  }

  // Any row; the two keys as in words().
  __device__ uint32_t word(int row, int key) const {
    const gcn::pairs4 all = words(row, key);
    const int i = row / kRowStep % kRows;
    return i < 2 ? (i == 0 ? all[0] : all[1]) : (i == 2 ? all[2] : all[3]);
  }

  // Of any one score.
  __device__ bool keeps(int row, int key) const { return keeps_by(word(row, key), key); }

  // Of a key, by its row's word.
  __device__ bool keeps_by(uint32_t word, int key) const {
    return (word >> (static_cast<uint32_t>(key) / kKeyStep % 2 * 16) & 0xffff) >= drop_;
  }

  // A pair of 16-bit numbers, each as it is or 0, by a word of bits.
  __device__ uint32_t drop_pair(uint32_t pair, uint32_t bits) const {
    const uint32_t most = drop_ - 1;
    return gcn::where_above(pair, bits, most << 16 | most);
  }

 private:
  uint32_t drop_;
  uint32_t batch_head_;
  uint64_t seed_, offset_;
};

// Calls f(i, j, word) for the rows first_row + 4 i of a lane (shape.h) and, of its keys first_key +
// 16 j, for each pair that shares a word. `whole`: first_row is below 4 in its 16 rows.
template <int rows, int keys, bool whole, class F>
__device__ inline void for_each_word(const DropoutMask& mask, int first_row, int first_key, F f) {
  static_assert(kGroups == DropoutMask::kRowStep && kGroupLanes == DropoutMask::kKeyStep);
#pragma unroll
  for (int j = 0; j < keys; j += 2) {
    const int key = first_key + j * kGroupLanes;
    gcn::pairs4 words{};
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int row = first_row + i * kGroups, word = i % DropoutMask::kRows;
      if (whole && word == 0) words = mask.words(row, key);
      f(i, j, whole ? words[word] : mask.word(row, key));
    }
  }
}

template <Tile T>
inline constexpr bool kWholeWords = T.rows_per_wave() % (kGroups * DropoutMask::kRows) == 0;

// Drops from the probabilities of a lane: rows `first_row` + 4 i, keys `first_key` + 16 j. fp32
// ones have a word each, of others those of keys 16 apart share one.
template <Tile T, Element E>
__device__ inline void drop_probabilities(
    const DropoutMask& mask, int first_row, int first_key,
    uint32_t (&p)[Shape<T>::kRows][Shape<T>::kKeys / per_word(E)]) {
  constexpr int kRows = Shape<T>::kRows, kKeys = Shape<T>::kKeys;
  for_each_word<kRows, kKeys, kWholeWords<T>>(
      mask, first_row, first_key, [&](int i, int j, uint32_t bits) {
        if constexpr (per_word(E) == 2) {
          p[i][j / 2] = mask.drop_pair(p[i][j / 2], bits);
        } else {
#pragma unroll
          for (int n = 0; n < (kKeys % 2 == 0 ? 2 : 1); ++n)
            if (!mask.keeps_by(bits, first_key + (j + n) * kGroupLanes)) p[i][j + n] = 0;
        }
      });
}

// Calls f(i, j, kept) for each score of a lane: rows `first_row` + 4 i, keys `first_key` + 16 j.
template <Tile T, class F>
__device__ inline void for_each_kept(const DropoutMask& mask, int first_row, int first_key, F f) {
  constexpr int kRows = Shape<T>::kRows, kKeys = Shape<T>::kKeys;
  for_each_word<kRows, kKeys, kWholeWords<T>>(
      mask, first_row, first_key, [&](int i, int j, uint32_t bits) {
#pragma unroll
        for (int n = 0; n < (kKeys % 2 == 0 ? 2 : 1); ++n)
          f(i, j + n, mask.keeps_by(bits, first_key + (j + n) * kGroupLanes));
        gcn::pin_schedule();  // or all decisions are made before any is used, in SGPRs
      });
}

// Likewise of scores that are transposed: keys `first_key` + 4 i, rows `first_row` + 16 j, where
// first_row % 16 is the lane's place in its group. The four lanes of a group that lie 4 apart need
// one word each of every call; so each makes the call for one of four scores, and they trade.
template <Tile T, class F>
__device__ inline void for_each_kept_transposed(const DropoutMask& mask, int first_row,
                                                int first_key, F f) {
  constexpr int kKeys = Shape<T>::kRows, kRows = Shape<T>::kKeys, kTogether = 4;
  const int turn = static_cast<uint32_t>(first_row) / DropoutMask::kRowStep % kTogether;
#pragma unroll
  for (int first = 0; first < kKeys * kRows; first += kTogether) {
    const uint32_t mine = first + turn;
    const int row = first_row + static_cast<int>(mine % kRows) * kGroupLanes;
    const int key = first_key + static_cast<int>(mine / kRows) * kGroups;
    const gcn::pairs4 sent = gcn::rotated(mask.words(row, key), turn);
    // A word that moves up n lanes is of the score of the lane that sent it.
    const gcn::pairs4 got = {sent[0], gcn::dpp::move_bits<gcn::dpp::kRowRotate<12>>(sent[3]),
                             gcn::dpp::move_bits<gcn::dpp::kRowRotate<8>>(sent[2]),
                             gcn::dpp::move_bits<gcn::dpp::kRowRotate<4>>(sent[1])};
    const gcn::pairs4 words = gcn::rotated(got, kTogether - turn);
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      const int score = first + n, i = score / kRows, j = score % kRows;
      if (score < kKeys * kRows) f(i, j, mask.keeps_by(words[n], first_key + i * kGroups));
    }
    gcn::pin_schedule();
  }
}

}  // namespace flashattn
