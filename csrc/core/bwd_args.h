// The one argument of every backward kernel, as the host fills it and the card reads it.
#pragma once

#include <cstdint>

#include "core/fwd_args.h"

namespace flashattn {

struct BwdArgs {
  FwdArgs fwd;      // the forward's, with what it gave: o and lse, which are only read here
  TensorView dout;  // [batch, seqlen_q, heads_q, head_dim_v]
  TensorView dq;    // as fwd.q
  TensorView dk;    // as fwd.k
  TensorView dv;    // as fwd.v
  // Of each query row, strides as fwd.lse; the dQ kernels write them, the dK and dV kernels read
  // them.
  float* shift;  // lse in base 2; +inf for a row without keys, whose probabilities are then 0
  float* delta;  // sum of dout * out
  // Or null: where dQ adds the gradient of the bias, [batch, heads_q, seqlen_q, seqlen_k]. The host
  // sees to it that no two workgroups of a launch add to the same place.
  float* dbias;
  int64_t dbias_batch_stride;
  int64_t dbias_head_stride;
};

}  // namespace flashattn
