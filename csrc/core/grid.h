// The grid of a launch, and what its workgroups compute.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/fwd_args.h"
#include "core/tile.h"

namespace flashattn {

struct Grid {
  uint32_t x, y, z;
};

// HIP allows 65535 workgroups in y and in z; a batch can be larger, so it is folded over both.
inline constexpr int32_t kBatchFold = 32768;

template <class T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0);
}

constexpr Grid grid_of(int32_t blocks, int32_t heads, int32_t batch) {
  return {static_cast<uint32_t>(blocks) * static_cast<uint32_t>(heads),
          static_cast<uint32_t>(batch < kBatchFold ? batch : kBatchFold),
          static_cast<uint32_t>(ceil_div(batch, kBatchFold))};
}

constexpr Grid fwd_grid(const FwdArgs& args, const Tile& tile) {
  return grid_of(ceil_div(args.seqlen_q, tile.block_m), args.heads_q, args.batch);
}

constexpr Grid bwd_grid(const FwdArgs& args, const Tile& tile, Gradient gradient) {
  if (gradient == Gradient::dq) return fwd_grid(args, tile);
  return grid_of(ceil_div(args.seqlen_k, tile.block_m), args.heads_kv, args.batch);
}

// What a workgroup computes.
struct WorkItem {
  int32_t batch;
  int32_t head_q;
  int32_t head_kv;
  int32_t first_row;  // of the block of queries, or of keys
};

// A grid's x runs through groups of key heads, in a group through query blocks, and for each block
// through all query heads of the group: they share K and V in L2. The last block comes first: under
// a causal mask it sees the most keys and should not start late. heads_together() says how many
// heads make a group.
constexpr WorkItem work_item(const FwdArgs& args, int32_t block_m, int32_t batch, int32_t x) {
  const int32_t q_blocks = ceil_div(args.seqlen_q, block_m);
  const int32_t ratio = args.heads_q / args.heads_kv;
  const int32_t block_heads = ratio * args.heads_together;
  const int32_t turn = x / block_heads, of_turn = x % block_heads;
  const int32_t head_kv = turn / q_blocks * args.heads_together + of_turn % args.heads_together;
  return {.batch = batch,
          .head_q = head_kv * ratio + of_turn / args.heads_together,
          .head_kv = head_kv,
          .first_row = (q_blocks - 1 - turn % q_blocks) * block_m};
}

// The same counted through the batch.
constexpr WorkItem work_item(const FwdArgs& args, int32_t block_m, int32_t index) {
  const int32_t of_batch = ceil_div(args.seqlen_q, block_m) * args.heads_q;
  return work_item(args, block_m, index / of_batch, index % of_batch);
}

// A block of keys of a key head; head_q is the first query head that reads it. Groups of key heads
// as above; the first block comes first: under a causal mask it is seen by the most queries.
constexpr WorkItem key_work_item(const FwdArgs& args, int32_t block_m, int32_t batch, int32_t x) {
  const int32_t k_blocks = ceil_div(args.seqlen_k, block_m);
  const int32_t turn = x / args.heads_together, of_turn = x % args.heads_together;
  const int32_t head_kv = turn / k_blocks * args.heads_together + of_turn;
  return {.batch = batch,
          .head_q = head_kv * (args.heads_q / args.heads_kv),
          .head_kv = head_kv,
          .first_row = turn % k_blocks * block_m};
}

// How many key heads take turns. One keeps the least in L2: all compute units stream the same K and
// V. But L2 has 16 channels of 256 bytes in turn, and where rows lie a multiple of 4 KiB apart (32
// heads of 128 in a token's row), one head's K is on one channel, which 60 compute units
// overload: 13.6 in place of 19 simulated TFLOPS at 32768 keys. Then `enough` heads at least are
// under way at a time; each takes compute units from the others, so K and V are read more often.
constexpr int32_t heads_together(const FwdArgs& args, int32_t enough, int64_t blocks_of_head,
                                 int64_t row_bytes, int compute_units) {
  constexpr int64_t kChannels = 16 * 256;
  const int64_t under_way = blocks_of_head == 0 ? enough : compute_units / blocks_of_head + 1;
  if (row_bytes % kChannels != 0 || under_way >= enough) return 1;
  for (int32_t n = enough; n < args.heads_kv; ++n) {
    if (args.heads_kv % n == 0) return n;
  }
  return args.heads_kv;
}

// A step multiplies block_m rows with block_n keys: at three quarters of the peak of 128 products a
// clock a compute unit reads 192 / block_m bytes a clock, and a channel gives 64. Of a third more
// channels none is busy for more than 3/4: for 128 rows two in place of the 1.4 that 60 compute
// units use up. Short sequences feel that Q and the first K of all workgroups come at once: with
// two in place of four heads 11,500 clocks more for each, at 4096 keys 1.9 % of a causal launch, at
// 8192 keys 0.3 %.
constexpr int32_t fwd_enough_heads(const FwdArgs& args, const Tile& tile, Element element,
                                   int compute_units) {
  constexpr int32_t kLong = 8192, kEnoughOfShort = 4;
  const int channels = ceil_div(4 * compute_units, tile.block_m);
  const int heads = ceil_div(256 * channels, 2 * halves_of(element) * tile.head_dim);
  return args.seqlen_k < kLong && heads < kEnoughOfShort ? kEnoughOfShort : heads;
}

constexpr int32_t heads_together(const FwdArgs& args, const Tile& tile, Element element,
                                 int compute_units) {
  const int64_t q_blocks = ceil_div(args.seqlen_q, tile.block_m);
  return heads_together(args, fwd_enough_heads(args, tile, element, compute_units),
                        q_blocks * (args.heads_q / args.heads_kv),
                        args.k.row_stride * halves_of(element) * 2, compute_units);
}

// dQ's blocks stream K and V, three products for each; blocks of keys stream Q and dO.
constexpr int32_t bwd_heads_together(const FwdArgs& args, const Tile& tile, Element element,
                                     Gradient gradient, int compute_units) {
  constexpr int32_t kEnough = 4;
  const bool own_queries = gradient == Gradient::dq;
  const int64_t blocks = ceil_div(own_queries ? args.seqlen_q : args.seqlen_k, tile.block_m);
  const TensorView& streamed = own_queries ? args.k : args.q;
  return heads_together(args, kEnough,
                        own_queries ? blocks * (args.heads_q / args.heads_kv) : blocks,
                        streamed.row_stride * halves_of(element) * 2, compute_units);
}

}  // namespace flashattn
