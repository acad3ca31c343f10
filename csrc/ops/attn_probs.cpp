#include "ops/attn_probs.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <limits>
#include <string>

#include "core/attn_probs_args.h"
#include "core/grid.h"
#include "ops/fwd_arguments.h"
#include "ops/launch_kernel.h"
#include "ops/placement.h"
#include "ops/redispatch.h"
#include "ops/views.h"

namespace flashattn {
namespace {

// Values take no part; keys stand in for them.
#define FLASHATTN_ATTN_PROBS_INPUTS \
  {q,                               \
   k,                               \
   k,                               \
   softmax_scale,                   \
   causal,                          \
   window_left,                     \
   window_right,                    \
   top_left,                        \
   softcap,                         \
   alibi_slopes,                    \
   attn_bias,                       \
   kNone,                           \
   cu_seqlens_q,                    \
   cu_seqlens_k,                    \
   seqused_k,                       \
   max_seqlen_q,                    \
   max_seqlen_k,                    \
   dropout_p,                       \
   rng_state}

const OptionalTensor kNone;

FwdShape check(const FwdInputs& in, const at::Tensor& lse) {
  const FwdShape shape = check_fwd(in);
  TORCH_CHECK_VALUE(lse.device() == in.q.device(), "softmax_lse must be on the device of q, ",
                    in.q.device(), "; it is on ", lse.device());
  TORCH_CHECK_TYPE(lse.scalar_type() == at::kFloat, "softmax_lse must have dtype float32; it has ",
                   lse.scalar_type());
  const c10::SymIntArrayRef sizes = lse.sym_sizes();
  const bool fits = in.varlen()
                        ? sizes.size() == 2 && sizes[0] == shape.heads_q && sizes[1] == shape.rows_q
                        : sizes.size() == 3 && sizes[0] == shape.batch &&
                              sizes[1] == shape.heads_q && sizes[2] == shape.seqlen_q;
  TORCH_CHECK_VALUE(fits, "softmax_lse must be that of the forward, ",
                    in.varlen() ? "(num_heads, total_q)" : "(batch_size, num_heads, seqlen_q)",
                    "; it has shape ", sizes);
  TORCH_CHECK_VALUE(lse.sym_numel() == 0 || lse.sym_stride(-1) == 1,
                    "softmax_lse must have a contiguous last dimension; its stride is ",
                    lse.sym_stride(-1));
  return shape;
}

at::Tensor allocate(const FwdInputs& in, const FwdShape& shape) {
  return at::empty_symint({shape.batch, shape.heads_q, shape.seqlen_q, shape.seqlen_k},
                          in.q.options());
}

}  // namespace

at::Tensor attn_probs(FLASHATTN_ATTN_PROBS_PARAMETERS) {
  const FwdInputs in FLASHATTN_ATTN_PROBS_INPUTS;
  const FwdShape shape = check(in, softmax_lse);
  if (q.is_cpu()) check_lengths(in);
  const c10::DeviceGuard guard(q.device());
  at::Tensor probs = allocate(in, shape);
  if (probs.numel() == 0) return probs;

  const FwdArgs fwd = fwd_arguments(in, shape, q, softmax_lse, {});
  const int64_t rows = int64_t{fwd.seqlen_q} * fwd.heads_q;
  constexpr int64_t kMostRows = std::numeric_limits<uint32_t>::max() / kAttnProbsThreads;
  TORCH_CHECK_VALUE(rows <= kMostRows, "num_heads * seqlen_q = ", rows,
                    " rows of probabilities are too many; allowed are ", kMostRows);
  const Grid grid = grid_of(fwd.seqlen_q, fwd.heads_q, fwd.batch);
  const std::string kernel =
      std::string("flashattn_attn_probs_") + name_of(*element_of(q.scalar_type()));
  TouchedMemory touched{.inputs = {byte_extent(softmax_lse)}, .outputs = {byte_extent(probs)}};
  for (const auto& [name, each] : in.tensors()) touched.inputs.push_back(byte_extent(each));
  launch_kernel(placement_of(q), kernel, grid, kAttnProbsThreads,
                AttnProbsArgs{fwd, probs.mutable_data_ptr()}, touched);
  return probs;
}

at::Tensor attn_probs_meta(FLASHATTN_ATTN_PROBS_PARAMETERS) {
  const FwdInputs in FLASHATTN_ATTN_PROBS_INPUTS;
  return allocate(in, check(in, softmax_lse));
}

at::Tensor attn_probs_autograd(FLASHATTN_ATTN_PROBS_PARAMETERS) {
  const FwdInputs in FLASHATTN_ATTN_PROBS_INPUTS;
  in.tensors()
      .check_devices();  // here fake tensors still tell their device; below they are all meta
  static const auto op = find_op<decltype(attn_probs)>("flashattn_rocm::attn_probs");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(FLASHATTN_ATTN_PROBS_ARGUMENTS);
}

}  // namespace flashattn
