// The launches of one backward.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/bwd_args.h"
#include "core/kernel_table.h"
#include "ops/checks.h"
#include "ops/placement.h"
#include "runtime/host_memory.h"

namespace flashattn {

// What one backward works on.
struct Gradients {
  const FwdInputs& in;
  const at::Tensor &dout, &out, &lse;  // lse: contiguous
  const at::Tensor &dq, &dk, &dv;
  // Undefined, or fp32 zeros [1 or batch, 1 or heads_q, seqlen_q, seqlen_k], sums over where it
  // is 1.
  at::Tensor dbias;
};

class BackwardLaunches {
 public:
  BackwardLaunches(const Gradients& gradients, const FwdShape& shape);

  // dQ first: it also writes what dK and dV need of each query.
  void run();

  // After that: sum of dout * out of each query, as lse; 0 for rows of no sequence.
  at::Tensor delta() const;

 private:
  void launch_dq();
  void launch(Gradient gradient, BwdArgs args);
  TouchedMemory touched(Gradient gradient) const;

  const Gradients& gradients_;
  Placement place_;
  Element element_;
  at::Tensor statistics_;  // [2, as lse]
  BwdArgs args_{};
};

}  // namespace flashattn
