// Rotary position embedding (Su et al. 2021) of a pair of columns, in fp32.
#pragma once

#include "attention/number.h"
#include "core/decode_args.h"
#include "gcn/vec.h"

namespace flashattn {

// Two columns that are turned together.
struct Pair {
  int first, second;
  float a, b;  // their new values
};

// Pair `pair` of a row at a position. Positions that the angles do not reach take the nearest.
template <Element E>
__device__ inline Pair turned_pair(const AppendArgs& args, const gcn::half* row, int pair,
                                   int position) {
  const int half_dim = args.rotary_dim / 2, last = args.positions - 1;
  const int angle_row = position < 0 ? 0 : position > last ? last : position;
  const int64_t angle = int64_t{angle_row} * half_dim + pair;
  const float c = widen<E>(static_cast<const gcn::half*>(args.cos)[angle]);
  const float s = widen<E>(static_cast<const gcn::half*>(args.sin)[angle]);
  const int first = args.interleaved ? 2 * pair : pair;
  const int second = args.interleaved ? 2 * pair + 1 : pair + half_dim;
  const float a = widen<E>(row[first]), b = widen<E>(row[second]);
  return {first, second, a * c - b * s, a * s + b * c};
}

}  // namespace flashattn
