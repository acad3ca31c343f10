#include "ops/autograd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <initializer_list>

#include "ops/redispatch.h"

namespace flashattn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

FwdResult call_fwd(FLASHATTN_FWD_PARAMETERS) {
  static const auto op = find_op<decltype(fwd)>("flashattn_rocm::fwd");
  return op.call(FLASHATTN_FWD_ARGUMENTS);
}

BwdResult call_bwd(FLASHATTN_BWD_PARAMETERS) {
  static const auto op = find_op<decltype(bwd)>("flashattn_rocm::bwd");
  return op.call(FLASHATTN_BWD_ARGUMENTS);
}

bool need_gradients(std::initializer_list<const at::Tensor*> tensors) {
  if (!c10::GradMode::is_enabled()) return false;
  for (const at::Tensor* tensor : tensors) {
    if (tensor->defined() && tensor->requires_grad()) return true;
  }
  return false;
}

OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

at::Tensor or_undefined(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

class Attention : public torch::autograd::Function<Attention> {
 public:
  // Of the forward's; the gradient of one that is no tensor, or has none, is an undefined tensor.
  static constexpr size_t kArguments = 19, kBias = 10, kSinks = 11;

  static variable_list forward(AutogradContext* context, FLASHATTN_FWD_PARAMETERS) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [out, lse] = call_fwd(FLASHATTN_FWD_ARGUMENTS);
    context->save_for_backward({q, k, v, out, lse, or_undefined(alibi_slopes),
                                or_undefined(attn_bias), or_undefined(sinks),
                                or_undefined(cu_seqlens_q), or_undefined(cu_seqlens_k),
                                or_undefined(seqused_k), or_undefined(rng_state)});
    auto& saved = context->saved_data;
    saved["softmax_scale"] = softmax_scale;
    saved["causal"] = causal;
    saved["window_left"] = window_left;
    saved["window_right"] = window_right;
    saved["top_left"] = top_left;
    saved["softcap"] = softcap;
    saved["max_seqlen_q"] = max_seqlen_q;
    saved["max_seqlen_k"] = max_seqlen_k;
    saved["dropout_p"] = dropout_p;
    saved["of_bias"] = attn_bias && attn_bias->requires_grad();
    saved["of_sinks"] = sinks && sinks->requires_grad();
    context->mark_non_differentiable({lse});
    return {out, lse};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list tensors = context->get_saved_variables();
    auto& saved = context->saved_data;
    const at::Tensor& given = gradients[0];
    const at::Tensor dout = given.sym_stride(-1) == 1 ? given : given.contiguous();
    const bool of_bias = saved["of_bias"].toBool(), of_sinks = saved["of_sinks"].toBool();
    const auto [dq, dk, dv, dbias, dsinks] =
        call_bwd(dout, tensors[0], tensors[1], tensors[2], tensors[3], tensors[4],
                 saved["softmax_scale"].toOptional<double>(), saved["causal"].toBool(),
                 saved["window_left"].toSymInt(), saved["window_right"].toSymInt(),
                 saved["top_left"].toBool(), saved["softcap"].toDouble(), if_defined(tensors[5]),
                 if_defined(tensors[6]), if_defined(tensors[7]), if_defined(tensors[8]),
                 if_defined(tensors[9]), if_defined(tensors[10]), saved["max_seqlen_q"].toSymInt(),
                 saved["max_seqlen_k"].toSymInt(), saved["dropout_p"].toDouble(),
                 if_defined(tensors[11]), of_bias, of_sinks);
    variable_list all(kArguments);
    all[0] = dq;
    all[1] = dk;
    all[2] = dv;
    if (of_bias) all[kBias] = dbias;
    if (of_sinks) all[kSinks] = dsinks;
    return all;
  }
};

class AttentionGradients : public torch::autograd::Function<AttentionGradients> {
 public:
  static variable_list forward(AutogradContext*, FLASHATTN_BWD_PARAMETERS) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [dq, dk, dv, dbias, dsinks] = call_bwd(FLASHATTN_BWD_ARGUMENTS);
    return {dq, dk, dv, dbias, dsinks};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "flashattn_rocm has no second derivative of attention: its gradients were computed with "
        "create_graph=True and are differentiated again");
  }
};

}  // namespace

FwdResult fwd_autograd(FLASHATTN_FWD_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  in.tensors()
      .check_devices();  // here fake tensors still tell their device; below they are all meta
  const at::Tensor bias = or_undefined(attn_bias), sink = or_undefined(sinks);
  const at::Tensor slopes = or_undefined(alibi_slopes);
  if (need_gradients({&q, &k, &v, &bias, &sink, &slopes})) {
    check_gradients(in);
    const variable_list results = Attention::apply(FLASHATTN_FWD_ARGUMENTS);
    return {results[0], results[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_fwd(FLASHATTN_FWD_ARGUMENTS);
}

BwdResult bwd_autograd(FLASHATTN_BWD_PARAMETERS) {
  if (need_gradients({&dout, &q, &k, &v, &out})) {
    const variable_list results = AttentionGradients::apply(FLASHATTN_BWD_ARGUMENTS);
    return {results[0], results[1], results[2], results[3], results[4]};
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_bwd(FLASHATTN_BWD_ARGUMENTS);
}

}  // namespace flashattn
