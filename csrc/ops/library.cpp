// torch.ops.flashattn_rocm: schemas, and which function serves which dispatch key.
#include <torch/library.h>

#include "ops/fwd.h"

TORCH_LIBRARY(flashattn_rocm, m) {
  m.def(
      "fwd(Tensor q, Tensor k, Tensor v, float? softmax_scale=None, bool causal=False) "
      "-> (Tensor out, Tensor softmax_lse)",
      {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(flashattn_rocm, CPU, m) { m.impl("fwd", &flashattn::fwd); }

// ROCm torch calls its devices cuda.
TORCH_LIBRARY_IMPL(flashattn_rocm, CUDA, m) { m.impl("fwd", &flashattn::fwd); }

TORCH_LIBRARY_IMPL(flashattn_rocm, Meta, m) { m.impl("fwd", &flashattn::fwd_meta); }

TORCH_LIBRARY_IMPL(flashattn_rocm, Autograd, m) { m.impl("fwd", &flashattn::fwd_autograd); }
