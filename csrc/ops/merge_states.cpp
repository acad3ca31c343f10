#include "ops/merge_states.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/where.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <string>

#include "core/grid.h"
#include "core/merge_args.h"
#include "ops/checks.h"
#include "ops/launch_kernel.h"
#include "ops/placement.h"
#include "ops/redispatch.h"
#include "ops/views.h"

namespace flashattn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

NamedTensors named(FLASHATTN_MERGE_PARAMETERS) {
  return {{"out_a", out_a}, {"lse_a", lse_a}, {"out_b", out_b}, {"lse_b", lse_b}};
}

// (batch, seqlen, heads, columns) has log-sum-exps (batch, heads, seqlen), either without batch.
std::vector<c10::SymInt> lse_sizes(const at::Tensor& out) {
  std::vector<c10::SymInt> sizes = out.sym_sizes().vec();
  sizes.pop_back();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes;
}

void check_out(const char* name, const at::Tensor& out, const at::Tensor& out_a) {
  TORCH_CHECK_TYPE(element_of(out.scalar_type()) && out.scalar_type() == out_a.scalar_type(),
                   "out_a and out_b must have the same dtype, torch.float16, torch.bfloat16 or "
                   "torch.float32; ",
                   name, " has ", dtype_name(out));
  TORCH_CHECK_VALUE(out.sym_sizes() == out_a.sym_sizes(), name,
                    " must have the shape of out_a, which is ", shape_name(out_a),
                    "; it has shape ", shape_name(out));
  TORCH_CHECK_VALUE(out.sym_numel() == 0 || out.sym_stride(-1) == 1, name,
                    " must have contiguous last dimension; its stride is ", out.sym_stride(-1));
}

void check_lse(const char* name, const at::Tensor& lse, const at::Tensor& out_a) {
  const std::vector<c10::SymInt> sizes = lse_sizes(out_a);
  TORCH_CHECK_TYPE(lse.scalar_type() == at::kFloat, name, " must have dtype torch.float32; it has ",
                   dtype_name(lse));
  TORCH_CHECK_VALUE(lse.sym_sizes() == c10::SymIntArrayRef(sizes), name, " must have shape ",
                    c10::SymIntArrayRef(sizes), " to go with out_a of shape ", shape_name(out_a),
                    "; it has shape ", shape_name(lse));
}

void check(FLASHATTN_MERGE_PARAMETERS) {
  named(out_a, lse_a, out_b, lse_b).check_devices();
  TORCH_CHECK_VALUE(out_a.dim() == 3 || out_a.dim() == 4,
                    "out_a must have shape (batch_size, seqlen, num_heads, head_size) or (total, "
                    "num_heads, head_size); it has shape ",
                    shape_name(out_a));
  TORCH_CHECK_VALUE(out_a.sym_size(-1) >= 1,
                    "out_a must have a head_size of at least 1; it has shape ", shape_name(out_a));
  check_out("out_a", out_a, out_a);
  check_out("out_b", out_b, out_a);
  check_lse("lse_a", lse_a, out_a);
  check_lse("lse_b", lse_b, out_a);
}

FwdResult allocate_result(const at::Tensor& out_a) {
  return {empty_in_layout_of(out_a),
          at::empty_symint(lse_sizes(out_a), out_a.options().dtype(at::kFloat))};
}

LseView lse_view(const at::Tensor& lse) {
  return {.data = static_cast<float*>(const_cast<void*>(lse.const_data_ptr())),
          .batch_stride = lse.dim() == 3 ? lse.stride(0) : 0,
          .row_stride = lse.stride(-1),
          .head_stride = lse.stride(-2)};
}

MergeArgs arguments(FLASHATTN_MERGE_PARAMETERS, const FwdResult& result) {
  const auto& [out, lse] = result;
  constexpr uint64_t kMostChunks = uint64_t{1} << 32;  // of a batch item: a lane each
  MergeArgs args{};
  args.a = view_of(out_a);
  args.b = view_of(out_b);
  args.o = view_of(out);
  args.lse_a = lse_view(lse_a);
  args.lse_b = lse_view(lse_b);
  args.lse = lse_view(lse);
  args.batch = static_cast<int32_t>(out_a.dim() == 4 ? out_a.size(0) : 1);
  args.seqlen = static_cast<int32_t>(out_a.size(-3));
  args.heads = static_cast<int32_t>(out_a.size(-2));
  args.columns = static_cast<int32_t>(out_a.size(-1));
  const auto of_chunk = kMergeChunkBytes / static_cast<int32_t>(out_a.element_size());
  args.chunks = ceil_div(args.columns, of_chunk);
  args.whole = has_rows_of_chunks(out_a) && has_rows_of_chunks(out_b) && has_rows_of_chunks(out);
  TORCH_CHECK_VALUE(uint64_t(args.seqlen) * args.heads * args.chunks < kMostChunks,
                    "out_a has shape ", shape_name(out_a),
                    "; a batch item must be below 2^32 pieces of 16 bytes");
  return args;
}

// The larger a side's log-sum-exp, the more it weighs; +inf stands for no key, as -inf does.
at::Tensor weight_of(const at::Tensor& lse, const at::Tensor& merged) {
  return at::where(lse.isinf(), 0.0, at::exp(lse - merged));
}

// From an LSE's shape to one that multiplies rows of out.
at::Tensor by_row(const at::Tensor& lse) { return lse.transpose(-1, -2).unsqueeze(-1); }

class Merging : public torch::autograd::Function<Merging> {
 public:
  static variable_list forward(AutogradContext* context, FLASHATTN_MERGE_PARAMETERS) {
    static const auto op = find_op<decltype(merge_states)>("flashattn_rocm::merge_states");
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [out, lse] = op.call(out_a, lse_a, out_b, lse_b);
    context->save_for_backward({out_a, lse_a, out_b, lse_b, lse});
    return {out, lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &out_a = saved[0], &lse_a = saved[1], &out_b = saved[2], &lse_b = saved[3];
    const at::Tensor weight_a = weight_of(lse_a, saved[4]), weight_b = weight_of(lse_b, saved[4]);
    const at::Tensor dout = gradients[0].to(at::kFloat);
    const auto of_out = [&](const at::Tensor& weight) {
      return (by_row(weight) * dout).to(out_a.scalar_type());
    };
    // What a side that weighs nothing holds may be no number.
    const at::Tensor both = weight_a * weight_b;
    const at::Tensor difference = ((out_b.to(at::kFloat) - out_a) * dout).sum(-1);
    const at::Tensor change = at::where(both == 0, 0.0, both * difference.transpose(-1, -2));
    return {of_out(weight_a), weight_a * gradients[1] - change, of_out(weight_b),
            weight_b * gradients[1] + change};
  }
};

}  // namespace

FwdResult merge_states(FLASHATTN_MERGE_PARAMETERS) {
  check(out_a, lse_a, out_b, lse_b);
  const c10::DeviceGuard guard(out_a.device());
  FwdResult result = allocate_result(out_a);
  const auto& [out, lse] = result;
  if (lse.numel() == 0) return result;  // HIP has no empty grids
  const MergeArgs args = arguments(out_a, lse_a, out_b, lse_b, result);
  TouchedMemory touched{.inputs = {}, .outputs = {byte_extent(out), byte_extent(lse)}};
  for (const auto& [name, tensor] : named(out_a, lse_a, out_b, lse_b))
    touched.inputs.push_back(byte_extent(tensor));
  const uint32_t count = uint32_t(args.seqlen) * uint32_t(args.heads) * uint32_t(args.chunks);
  const auto blocks = static_cast<int32_t>(ceil_div(count, uint32_t{kMergeThreads}));
  const std::string kernel =
      std::string("flashattn_merge_states_") + name_of(*element_of(out_a.scalar_type()));
  launch_kernel(placement_of(out_a), kernel, grid_of(blocks, 1, args.batch), kMergeThreads, args,
                touched, "decode");
  return result;
}

FwdResult merge_states_meta(FLASHATTN_MERGE_PARAMETERS) {
  check(out_a, lse_a, out_b, lse_b);
  return allocate_result(out_a);
}

FwdResult merge_states_autograd(FLASHATTN_MERGE_PARAMETERS) {
  named(out_a, lse_a, out_b, lse_b).check_devices();  // as in fwd_autograd
  const variable_list results = Merging::apply(out_a, lse_a, out_b, lse_b);
  return {results[0], results[1]};
}

}  // namespace flashattn
