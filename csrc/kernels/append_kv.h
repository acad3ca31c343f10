// New keys and values go to the cache, keys turned by their positions, and so does q; one workgroup
// a token. Nothing outside the cache is written, whatever seqlens, batch_idx and the block table
// hold.
#pragma once

#include "attention/append_place.h"
#include "attention/epilogue.h"
#include "attention/rotary.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "gcn/vec.h"

namespace flashattn {

// All heads of a token.
struct TokenRows {
  gcn::half* base;
  int64_t head_stride;

  __device__ static TokenRows of(const TensorView& x, int item, int row) {
    return {static_cast<gcn::half*>(x.data) + item * x.batch_stride + row * x.row_stride,
            x.head_stride};
  }
};

// Copies them by pairs of columns, turned or as they are.
template <Element E>
__device__ inline void copy_token(const AppendArgs& args, const TokenRows& from,
                                  const TokenRows& to, int heads, int columns, int position,
                                  bool turn) {
  const int pairs = (columns + 1) / 2;
  for (int i = static_cast<int>(threadIdx.x); i < heads * pairs; i += kAppendThreads) {
    const gcn::half* const x = from.base + i / pairs * from.head_stride;
    gcn::half* const y = to.base + i / pairs * to.head_stride;
    const int pair = i % pairs;
    if (turn && pair < args.rotary_dim / 2) {
      const Pair turned = turned_pair<E>(args, x, pair, position);
      y[turned.first] = narrow<E>(turned.a);
      y[turned.second] = narrow<E>(turned.b);
    } else {
      y[2 * pair] = x[2 * pair];
      if (2 * pair + 1 < columns) y[2 * pair + 1] = x[2 * pair + 1];
    }
  }
}

template <Element E>
__device__ inline void turn_query(const AppendArgs& args, const NewToken& token) {
  if (args.q.data == nullptr || token.index >= args.seqlen_q) return;
  copy_token<E>(args, TokenRows::of(args.q, token.batch, token.index),
                TokenRows::of(args.q_out, token.batch, token.index), args.heads_q, args.head_dim,
                args.q_at_one_position ? token.held : token.position(), true);
}

template <Element E>
__device__ inline void append_kv(const AppendArgs& args) {
  const NewToken token = NewToken::from_grid(args);
  if (token.batch >= args.batch) return;
  turn_query<E>(args, token);
  if (token.index >= args.seqlen_new) return;
  const AppendPlace place = AppendPlace::of(args.cache, token);
  if (!place.exists()) return;
  copy_token<E>(args, TokenRows::of(args.k, token.batch, token.index),
                TokenRows::of(args.cache.k, place.item, place.row), args.heads_kv, args.head_dim,
                token.position(), args.cos != nullptr);
  copy_token<E>(args, TokenRows::of(args.v, token.batch, token.index),
                TokenRows::of(args.cache.v, place.item, place.row), args.heads_kv, args.head_dim_v,
                token.position(), false);
}

}  // namespace flashattn
