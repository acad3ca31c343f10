// Which query block of which head and sequence a workgroup computes (undoes core/grid.h), and where
// that sequence lies.
#pragma once

#include <hip/hip_runtime.h>

#include "core/fwd_args.h"
#include "core/grid.h"
#include "core/tile.h"
#include "gcn/vec.h"

namespace flashattn {

struct WorkItem {
  int batch;
  int head_q;
  int head_kv;
  int first_row;  // of the query block

  // The grid runs through groups of key heads, in a group through query blocks, and for each block
  // through all query heads of the group: they share K and V in L2. The last block comes first:
  // under a causal mask it sees the most keys and should not start late. core/grid.h says how many
  // heads make a group.
  template <Tile T>
  __device__ static WorkItem from_grid(const FwdArgs& args) {
    const int q_blocks = ceil_div(args.seqlen_q, T.block_m);
    const int ratio = args.heads_q / args.heads_kv;
    const int block_heads = ratio * args.heads_together;
    const int index = static_cast<int>(blockIdx.x);
    const int turn = index / block_heads, of_turn = index % block_heads;
    const int head_kv = turn / q_blocks * args.heads_together + of_turn % args.heads_together;
    return {.batch = static_cast<int>(blockIdx.z) * kBatchFold + static_cast<int>(blockIdx.y),
            .head_q = head_kv * ratio + of_turn / args.heads_together,
            .head_kv = head_kv,
            .first_row = (q_blocks - 1 - turn % q_blocks) * T.block_m};
  }
};

// One sequence of the batch: its lengths, and its first rows where all sequences share one tensor.
struct Sequence {
  int batch;  // index for strides; 0 where first_q and first_k say it all
  int first_q, first_k;
  int seqlen_q, seqlen_k;

  __device__ static Sequence of(const FwdArgs& args, int batch) {
    const Sequences& s = args.sequences;
    Sequence it{batch, 0, 0, args.seqlen_q, args.seqlen_k};
    if (s.cu_seqlens_q != nullptr) {
      it.first_q = s.cu_seqlens_q[batch];
      it.first_k = s.cu_seqlens_k[batch];
      it.seqlen_q = s.cu_seqlens_q[batch + 1] - it.first_q;
      it.seqlen_k = s.cu_seqlens_k[batch + 1] - it.first_k;
      it.batch = 0;
    }
    if (s.seqused_k != nullptr) {
      const int used = s.seqused_k[batch];
      it.seqlen_k = used < it.seqlen_k ? used : it.seqlen_k;
    }
    return it;
  }
};

// First element of a head of a sequence that begins at a row of the tensor.
__device__ inline gcn::half* head_base(const TensorView& x, int batch, int first, int head) {
  return static_cast<gcn::half*>(x.data) + batch * x.batch_stride + first * x.row_stride +
         head * x.head_stride;
}

}  // namespace flashattn
