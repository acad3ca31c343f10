// Which query block of which head and sequence a workgroup computes. Undoes core/grid.h.
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

  // Blocks of a head are neighbours in the grid, so that they share its K and V in L2. The last
  // block comes first: under a causal mask it sees the most keys and should not start late.
  template <Tile T>
  __device__ static WorkItem from_grid(const FwdArgs& args) {
    const int q_blocks = ceil_div(args.seqlen_q, T.block_m);
    const int head = static_cast<int>(blockIdx.x) / q_blocks;
    const int block = q_blocks - 1 - static_cast<int>(blockIdx.x) % q_blocks;
    return {.batch = static_cast<int>(blockIdx.z) * kBatchFold + static_cast<int>(blockIdx.y),
            .head_q = head,
            .head_kv = head / (args.heads_q / args.heads_kv),
            .first_row = block * T.block_m};
  }
};

// First element of a head of a sequence.
__device__ inline gcn::half* head_base(const TensorView& x, int batch, int head) {
  return static_cast<gcn::half*>(x.data) + batch * x.batch_stride + head * x.head_stride;
}

}  // namespace flashattn
