#include "ops/fwd_arguments.h"

#include <cmath>

#include "ops/views.h"

namespace flashattn {
namespace {

const int32_t* indices(const OptionalTensor& tensor) {
  return tensor ? tensor->const_data_ptr<int32_t>() : nullptr;
}

BiasType bias_type(const at::Tensor& bias) {
  switch (bias.scalar_type()) {
    case at::kBool:
      return BiasType::mask;
    case at::kFloat:
      return BiasType::f32;
    case at::kHalf:
      return BiasType::f16;
    default:
      return BiasType::bf16;
  }
}

ScoreChanges score_changes(const FwdInputs& in, const FwdShape& shape) {
  ScoreChanges changes{};
  changes.softcap = static_cast<float>(in.softcap);
  if (in.alibi_slopes) {
    changes.alibi_slopes = in.alibi_slopes->const_data_ptr<float>();
    changes.alibi_batch_stride = in.alibi_slopes->dim() == 2 ? in.alibi_slopes->stride(0) : 0;
  }
  if (in.attn_bias) {
    const at::Tensor bias =
        in.attn_bias->expand_symint({shape.batch, shape.heads_q, shape.seqlen_q, shape.seqlen_k});
    changes.bias = bias.const_data_ptr();
    changes.bias_type = bias_type(bias);
    changes.bias_batch_stride = bias.stride(0);
    changes.bias_head_stride = bias.stride(1);
    changes.bias_row_stride = bias.stride(2);
    changes.bias_key_stride = bias.stride(3);
  }
  return changes;
}

// In steps of 2^-16; a rate below half a step is none.
Dropout dropout(const FwdInputs& in, const FwdShape& shape) {
  constexpr double kAll = 1 << 16;
  const auto drop = static_cast<uint32_t>(std::lround(in.dropout_p * kAll));
  if (drop == 0) return {};
  return {.rng_state = in.rng_state->const_data_ptr<int64_t>(),
          .drop = drop,
          .scale = static_cast<float>(1.0 / (1.0 - in.dropout_p)),
          .first_head = 0,
          .batch_stride = static_cast<uint32_t>(as_int32(shape.heads_q))};
}

}  // namespace

int32_t as_int32(const c10::SymInt& size) { return static_cast<int32_t>(size.expect_int()); }

int32_t window_side(const c10::SymInt& side) {
  const int64_t keys = side.expect_int();
  return keys < 0 || keys > kMaxSeqlen ? kMaxSeqlen : static_cast<int32_t>(keys);
}

bool changes_scores(const FwdInputs& in) {
  return in.dropout_p != 0.0 || in.softcap != 0.0 || in.alibi_slopes.has_value() ||
         in.attn_bias.has_value();
}

FwdArgs fwd_arguments(const FwdInputs& in, const FwdShape& shape, const at::Tensor& out,
                      const at::Tensor& lse, const at::Tensor& sinks) {
  const int32_t head_dim = as_int32(shape.head_dim);
  FwdArgs args{};
  args.q = view_of(in.q);
  args.k = view_of(in.k);
  args.v = view_of(in.v);
  args.o = view_of(out);
  args.lse = static_cast<float*>(const_cast<void*>(lse.const_data_ptr()));
  args.sinks = sinks.defined() ? sinks.const_data_ptr<float>() : nullptr;
  args.sequences = {indices(in.cu_seqlens_q), indices(in.cu_seqlens_k), indices(in.seqused_k)};
  args.scores = score_changes(in, shape);
  args.dropout = dropout(in, shape);
  args.lse_batch_stride = in.varlen() ? 0 : lse.stride(0);
  args.lse_head_stride = lse.stride(in.varlen() ? 0 : 1);
  args.batch = as_int32(shape.batch);
  args.seqlen_q = as_int32(shape.seqlen_q);
  args.seqlen_k = as_int32(shape.seqlen_k);
  args.heads_q = as_int32(shape.heads_q);
  args.heads_kv = as_int32(shape.heads_kv);
  args.head_dim = head_dim;
  args.head_dim_v = as_int32(shape.head_dim_v);
  args.window_left = window_side(in.window_left);
  args.window_right = in.causal ? 0 : window_side(in.window_right);
  args.top_left = in.top_left ? 1 : 0;
  args.softmax_scale = static_cast<float>(in.softmax_scale.value_or(1.0 / std::sqrt(head_dim)));
  return args;
}

}  // namespace flashattn
