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
// Rows and keys are counted in their sequence. A probability is kept iff its 16 bits are below
// `keep`.
#pragma once

#include "core/fwd_args.h"
#include "gcn/philox.h"
#include "gcn/vec.h"

namespace flashattn {

class DropoutMask {
 public:
  static constexpr int kRowStep = 4;   // of the rows of one call,
  static constexpr int kKeyStep = 16;  // of its keys
  static constexpr int kRows = 4;      // and how many rows

  // `batch` counts sequences. The seed is the same in all lanes; saying so keeps it in SGPRs.
  __device__ DropoutMask(const Dropout& args, int batch, int heads_q, int head_q)
      : keep_(args.keep), batch_head_(static_cast<uint32_t>(batch) * heads_q + head_q) {
    if (args.rng_state == nullptr) return;
    const auto word = [&](int i) {
      return static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(
          static_cast<int>(reinterpret_cast<const uint32_t*>(args.rng_state)[i])));
    };
    seed_[0] = word(0);
    seed_[1] = word(1) ^ word(3);
    offset_ = word(2);
  }

  // Word i: the bits of row + 4 i, of `key` in its lower half and of key + 16 in its upper one.
  // `row` is below 4 in its 16 rows, `key` below 16 in its 32 keys, or word and half are others.
  __device__ gcn::pairs4 words(int row, int key) const {
    const auto r = static_cast<uint32_t>(row), k = static_cast<uint32_t>(key);
    return gcn::philox4x32_10({k / 32 * 16 + k % 16, r / 16 * 4 + r % 4, batch_head_, offset_},
                              seed_[0], seed_[1]);
  }

  // Any row; the two keys as in words().
  __device__ uint32_t word(int row, int key) const {
    const gcn::pairs4 all = words(row, key);
    const int i = row / kRowStep % kRows;
    return i < 2 ? (i == 0 ? all[0] : all[1]) : (i == 2 ? all[2] : all[3]);
  }

  // Of any one score.
  __device__ bool keeps(int row, int key) const {
    return (word(row, key) >> (key / kKeyStep % 2 * 16) & 0xffff) < keep_;
  }

  // A pair of 16-bit numbers, each as it is or 0, by a word of bits.
  __device__ uint32_t drop_pair(uint32_t pair, uint32_t bits) const {
    return gcn::where_below(pair, bits, keep_ << 16 | keep_);
  }

 private:
  uint32_t keep_;
  uint32_t batch_head_;
  uint32_t seed_[2] = {0, 0};
  uint32_t offset_ = 0;
};

}  // namespace flashattn
