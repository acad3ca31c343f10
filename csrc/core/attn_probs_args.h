// The one argument of the kernels that write probabilities out.
#pragma once

#include "core/fwd_args.h"

namespace flashattn {

struct AttnProbsArgs {
  FwdArgs fwd;  // of it v, o and sinks are not used, and lse is what a forward gave
  void* probs;  // [batch, heads_q, seqlen_q, seqlen_k], contiguous, dtype of q
};

inline constexpr int kAttnProbsThreads = 256;

}  // namespace flashattn
