// Which block of which head and sequence a workgroup computes (undoes core/grid.h), and where
// that sequence lies.
#pragma once

#include <hip/hip_runtime.h>

#include "attention/batch_of_grid.h"
#include "attention/number.h"
#include "core/fwd_args.h"
#include "core/grid.h"
#include "core/tile.h"
#include "gcn/vec.h"

namespace flashattn {

// The query block of this workgroup in a grid of fwd_grid().
__device__ inline WorkItem item_of_grid(const FwdArgs& args, int block_m) {
  return work_item(args, block_m, batch_of_grid(), static_cast<int>(blockIdx.x));
}

// The block of keys of this workgroup in a grid of bwd_grid().
__device__ inline WorkItem key_item_of_grid(const FwdArgs& args, int block_m) {
  return key_work_item(args, block_m, batch_of_grid(), static_cast<int>(blockIdx.x));
}

// One sequence of the batch: its lengths, and its first rows where all sequences share one tensor.
struct Sequence {
  int batch;  // index for strides; 0 where first_q and first_k say it all
  int first_q, first_k;
  int seqlen_q, seqlen_k;

  // Inlined: by a pointer to it clang 16 keeps a copy of the argument in scratch.
  __device__ __forceinline__ static Sequence of(const FwdArgs& args, int batch) {
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

// First element of a head of a sequence that begins at a row of the tensor. Indices are scaled by
// the element's size last: strides that are scaled first have their upper half in a VGPR.
template <Element E = Element::f16>
__device__ inline gcn::half* head_base(const TensorView& x, int batch, int first, int head) {
  return reinterpret_cast<gcn::half*>(static_cast<Number<E>*>(x.data) + batch * x.batch_stride +
                                      first * x.row_stride + head * x.head_stride);
}

}  // namespace flashattn
