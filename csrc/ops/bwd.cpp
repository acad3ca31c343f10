#include "ops/bwd.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include "ops/bwd_launches.h"
#include "ops/checks.h"
#include "ops/launch_kernel.h"
#include "ops/views.h"

namespace flashattn {
namespace {

// Rows that belong to no sequence, or lie behind the keys that are used, are never written: their
// gradient is 0.
at::Tensor like(const at::Tensor& tensor, const FwdInputs& in) {
  const bool has_gaps = in.varlen() || in.seqused_k.has_value();
  at::Tensor gradient = empty_in_layout_of(tensor);
  return has_gaps ? gradient.zero_() : gradient;
}

// Contiguous; empty unless it is asked for.
at::Tensor like_option(const OptionalTensor& tensor, bool asked, const at::Tensor& q) {
  return asked ? at::empty_like(*tensor, at::MemoryFormat::Contiguous)
               : at::empty({0}, q.options());
}

FwdShape check(const FwdInputs& in, const at::Tensor& dout, const at::Tensor& out,
               const at::Tensor& softmax_lse) {
  FwdShape shape = check_fwd(in);
  check_bwd(in, shape, dout, out, softmax_lse);
  return shape;
}

// The bias's sizes behind as many ones as four dimensions take.
std::vector<int64_t> sizes_of_4(const at::Tensor& bias) {
  std::vector<int64_t> sizes(4 - bias.dim(), 1);
  sizes.insert(sizes.end(), bias.sizes().begin(), bias.sizes().end());
  return sizes;
}

// In fp32 as the kernels sum it: as the bias, but of all queries and keys.
at::Tensor bias_sums(const FwdInputs& in, const FwdShape& shape) {
  const std::vector<int64_t> sizes = sizes_of_4(*in.attn_bias);
  return at::zeros({sizes[0], sizes[1], shape.seqlen_q.expect_int(), shape.seqlen_k.expect_int()},
                   in.q.options().dtype(at::kFloat));
}

// A sink is a score without a value: its P is exp(sink - lse), its dP 0, its dS -P * delta.
at::Tensor sinks_gradient_of(const at::Tensor& sinks, const at::Tensor& lse,
                             const at::Tensor& delta) {
  const at::Tensor by_head =
      lse.dim() == 3 ? sinks.to(at::kFloat).view({1, -1, 1}) : sinks.to(at::kFloat).view({-1, 1});
  // Rows without keys, rows of no sequence, and sinks of -inf have no share.
  const at::Tensor share = at::where(delta == 0, 0.0, at::exp(by_head - lse) * delta);
  const auto others = lse.dim() == 3 ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1};
  const at::Tensor sum = share.sum(others);
  return sum.neg().to(sinks.scalar_type());
}

}  // namespace

BwdResult bwd(FLASHATTN_BWD_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  const FwdShape shape = check(in, dout, out, softmax_lse);
  check_asked(in, bias_gradient, sinks_gradient);
  if (q.is_cpu()) check_lengths(in);
  const c10::DeviceGuard guard(q.device());
  const at::Tensor lse = softmax_lse.contiguous();
  const at::Tensor dq = like(q, in), dk = like(k, in), dv = like(v, in);
  const Gradients gradients{in, dout, out, lse,
                            dq, dk,   dv,  bias_gradient ? bias_sums(in, shape) : at::Tensor()};
  BackwardLaunches launches(gradients, shape);
  launches.run();
  at::Tensor dbias = like_option(attn_bias, false, q), dsinks = like_option(sinks, false, q);
  if (bias_gradient) {
    dbias = at::sum_to(gradients.dbias, sizes_of_4(*attn_bias))
                .reshape(attn_bias->sizes())
                .to(attn_bias->scalar_type());
  }
  if (sinks_gradient) dsinks = sinks_gradient_of(*sinks, lse, launches.delta());
  return {dq, dk, dv, dbias, dsinks};
}

BwdResult bwd_meta(FLASHATTN_BWD_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  check(in, dout, out, softmax_lse);
  check_asked(in, bias_gradient, sinks_gradient);
  return {like(q, in), like(k, in), like(v, in), like_option(attn_bias, bias_gradient, q),
          like_option(sinks, sinks_gradient, q)};
}

void bwd_into(FLASHATTN_BWD_INTO_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  const FwdShape shape = check(in, dout, out, softmax_lse);
  check_targets(in, dq, dk, dv);
  if (q.is_cpu()) check_lengths(in);
  const c10::DeviceGuard guard(q.device());
  const at::Tensor lse = softmax_lse.contiguous();
  const Gradients gradients{in, dout, out, lse, dq, dk, dv, {}};
  BackwardLaunches(gradients, shape).run();
  mark_written({{"dq", dq}, {"dk", dk}, {"dv", dv}});
}

void bwd_into_meta(FLASHATTN_BWD_INTO_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  check(in, dout, out, softmax_lse);
  check_targets(in, dq, dk, dv);
}

}  // namespace flashattn
