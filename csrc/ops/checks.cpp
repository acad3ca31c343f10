#include "ops/checks.h"

#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "ops/dispatch.h"
#include "ops/views.h"

namespace flashattn {
namespace {

// The kernels index rows, heads and batch items by int32; offsets in memory are 64-bit.
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

struct Named {
  const char* name;        // of the argument
  const char* upstream;    // what flash-attn's error texts call it
  const char* dimensions;  // what its four sizes mean
  const at::Tensor& tensor;
};

}  // namespace

std::string dtype_name(const at::Tensor& tensor) {
  return "torch." + std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

std::string shape_name(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sym_sizes();
  return text.str();
}

namespace {

void check_dtype(const Named& first, const Named& argument) {
  TORCH_CHECK_TYPE(argument.tensor.scalar_type() == first.tensor.scalar_type(), first.upstream,
                   " and ", argument.upstream, " must have the same dtype: ", first.name, " has ",
                   dtype_name(first.tensor), ", ", argument.name, " has ",
                   dtype_name(argument.tensor));
}

void check_rank(const Named& argument, int64_t rank) {
  TORCH_CHECK_VALUE(argument.tensor.dim() == rank, argument.name, " must have shape ",
                    argument.dimensions, "; it has ", argument.tensor.dim(),
                    " dimensions: ", shape_name(argument.tensor));
  for (const c10::SymInt& size : argument.tensor.sym_sizes()) {
    TORCH_CHECK_VALUE(size <= kMaxSize, argument.name, " has shape ", shape_name(argument.tensor),
                      "; no size may be above ", kMaxSize);
  }
}

void check_last_stride(const Named& argument) {
  const at::Tensor& tensor = argument.tensor;
  TORCH_CHECK_VALUE(tensor.sym_numel() == 0 || tensor.sym_stride(-1) == 1,
                    "Input tensor must have contiguous last dimension: ", argument.name,
                    " has stride ", tensor.sym_stride(-1), " in its last dimension, allowed is 1");
}

void check_same_size(const Named& a, const Named& b, int64_t dim, const char* what) {
  TORCH_CHECK_VALUE(a.tensor.sym_size(dim) == b.tensor.sym_size(dim), a.name, " and ", b.name,
                    " must have the same ", what, ": ", a.name, " has ", a.tensor.sym_size(dim),
                    " (shape ", shape_name(a.tensor), "), ", b.name, " has ",
                    b.tensor.sym_size(dim), " (shape ", shape_name(b.tensor), ")");
}

void check_head_dim(const Named& argument) {
  const c10::SymInt head_dim = argument.tensor.sym_size(-1);
  const int most = max_head_dim(*element_of(argument.tensor.scalar_type()));
  TORCH_CHECK_VALUE(head_dim >= 1 && head_dim <= most,
                    "FlashAttention forward only supports head dimension at most ", most, "; ",
                    argument.name, " has head_dim ", head_dim, " (shape ",
                    shape_name(argument.tensor), ")");
}

void check_seqlen(const char* name, const c10::SymInt& seqlen) {
  TORCH_CHECK_VALUE(seqlen <= kMaxSeqlen, name, " has a sequence of ", seqlen,
                    "; allowed is at most ", kMaxSeqlen);
}

void check_heads(const Named& q, const Named& k) {
  const c10::SymInt heads_q = q.tensor.sym_size(-2);
  const c10::SymInt heads_kv = k.tensor.sym_size(-2);
  const bool divides = heads_kv == 0 ? heads_q == 0 : heads_q % heads_kv == 0;
  TORCH_CHECK_VALUE(divides,
                    "Number of heads in key/value must divide number of heads in query: ", q.name,
                    " has ", heads_q, " heads, ", k.name, " has ", heads_kv);
}

void check_scale(std::optional<double> softmax_scale) {
  if (!softmax_scale) return;
  TORCH_CHECK_VALUE(std::isfinite(static_cast<float>(*softmax_scale)),
                    "softmax_scale must be a finite float32, or None for 1/sqrt(head_dim); got ",
                    *softmax_scale);
}

void check_alibi(const at::Tensor& slopes, const FwdShape& shape) {
  TORCH_CHECK_TYPE(slopes.scalar_type() == at::kFloat,
                   "ALiBi slopes must have dtype fp32: alibi_slopes has ", dtype_name(slopes));
  const bool by_head = slopes.dim() == 1 && slopes.sym_size(0) == shape.heads_q;
  const bool by_batch =
      slopes.dim() == 2 && slopes.sym_size(0) == shape.batch && slopes.sym_size(1) == shape.heads_q;
  TORCH_CHECK_VALUE(by_head || by_batch, "alibi_slopes must have shape (num_heads,) = (",
                    shape.heads_q, ",) or (batch_size, num_heads) = (", shape.batch, ", ",
                    shape.heads_q, "); it has shape ", shape_name(slopes));
  TORCH_CHECK_VALUE(slopes.sym_numel() == 0 || slopes.sym_stride(-1) == 1,
                    "alibi_slopes must have contiguous last dimension: its stride is ",
                    slopes.sym_stride(-1));
}

void check_bias(const at::Tensor& bias, const FwdShape& shape, bool varlen) {
  TORCH_CHECK_VALUE(!varlen, "attn_bias is not served together with cu_seqlens_q; it has shape ",
                    shape_name(bias));
  const at::ScalarType type = bias.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kBool || type == at::kFloat || type == at::kHalf || type == at::kBFloat16,
      "attn_bias must be bool (True: may attend), float32, float16 or bfloat16; it is ",
      dtype_name(bias));
  const c10::SymInt want[] = {shape.batch, shape.heads_q, shape.seqlen_q, shape.seqlen_k};
  bool fits = bias.dim() <= 4;
  for (int64_t dim = 0; fits && dim < bias.dim(); ++dim) {
    const c10::SymInt size = bias.sym_size(bias.dim() - 1 - dim);
    fits = size == 1 || size == want[3 - dim];
  }
  TORCH_CHECK_VALUE(fits,
                    "attn_bias must broadcast to (batch_size, num_heads, seqlen_q, seqlen_k) = (",
                    shape.batch, ", ", shape.heads_q, ", ", shape.seqlen_q, ", ", shape.seqlen_k,
                    "); it has shape ", shape_name(bias));
}

void check_sinks(const at::Tensor& sinks, const FwdShape& shape) {
  TORCH_CHECK_TYPE(sinks.is_floating_point(), "sinks must be floating point; they are ",
                   dtype_name(sinks));
  TORCH_CHECK_VALUE(sinks.dim() == 1 && sinks.sym_size(0) == shape.heads_q,
                    "sinks must have shape (num_heads,) = (", shape.heads_q, ",); they have shape ",
                    shape_name(sinks));
}

}  // namespace

void check_index(const char* name, const at::Tensor& index, const c10::SymInt& size) {
  TORCH_CHECK_TYPE(index.scalar_type() == at::kInt, name, " must have dtype int32; it has ",
                   dtype_name(index));
  TORCH_CHECK_VALUE(index.dim() == 1 && index.sym_size(0) == size, name, " must have shape (", size,
                    ",); it has shape ", shape_name(index));
  TORCH_CHECK_VALUE(index.is_contiguous(), name, " must be contiguous");
}

namespace {

void check_dropout(const FwdInputs& in) {
  TORCH_CHECK_VALUE(in.dropout_p >= 0.0 && in.dropout_p < 1.0,
                    "dropout_p must be at least 0 and below 1; it is ", in.dropout_p);
  TORCH_CHECK_VALUE(in.dropout_p == 0.0 || in.rng_state.has_value(), "dropout_p=", in.dropout_p,
                    " needs rng_state, two int64 (seed, offset) that say what is dropped");
  if (!in.rng_state) return;
  TORCH_CHECK_TYPE(in.rng_state->scalar_type() == at::kLong,
                   "rng_state must have dtype int64; it has ", dtype_name(*in.rng_state));
  TORCH_CHECK_VALUE(in.rng_state->dim() == 1 && in.rng_state->sym_size(0) == 2,
                    "rng_state must have shape (2,), seed and offset; it has shape ",
                    shape_name(*in.rng_state));
  TORCH_CHECK_VALUE(in.rng_state->is_contiguous(), "rng_state must be contiguous");
}

// Sizes of a batch of equal sequences, or of packed ones.
FwdShape shape_of(const FwdInputs& in) {
  if (in.varlen()) {
    return {in.cu_seqlens_q->sym_size(0) - 1,
            in.q.sym_size(0),
            in.max_seqlen_q,
            in.max_seqlen_k,
            in.q.sym_size(1),
            in.k.sym_size(1),
            in.q.sym_size(2),
            in.v.sym_size(2)};
  }
  return {in.q.sym_size(0), in.q.sym_size(1), in.q.sym_size(1), in.k.sym_size(1),
          in.q.sym_size(2), in.k.sym_size(2), in.q.sym_size(3), in.v.sym_size(3)};
}

void check_varlen(const FwdInputs& in) {
  TORCH_CHECK_VALUE(in.cu_seqlens_q.has_value() == in.cu_seqlens_k.has_value(),
                    "cu_seqlens_q and cu_seqlens_k must be given together");
  TORCH_CHECK_VALUE(in.varlen() || (in.max_seqlen_q == 0 && in.max_seqlen_k == 0),
                    "max_seqlen_q=", in.max_seqlen_q, " and max_seqlen_k=", in.max_seqlen_k,
                    " are for cu_seqlens_q alone");
  if (!in.varlen()) return;
  TORCH_CHECK_VALUE(in.cu_seqlens_q->dim() == 1 && in.cu_seqlens_q->sym_size(0) >= 1,
                    "cu_seqlens_q must have shape (batch_size + 1,); it has shape ",
                    shape_name(*in.cu_seqlens_q));
  check_index("cu_seqlens_q", *in.cu_seqlens_q, in.cu_seqlens_q->sym_size(0));
  check_index("cu_seqlens_k", *in.cu_seqlens_k, in.cu_seqlens_q->sym_size(0));
  TORCH_CHECK_VALUE(in.max_seqlen_q >= 0 && in.max_seqlen_k >= 0,
                    "max_seqlen_q and max_seqlen_k must not be negative; they are ",
                    in.max_seqlen_q, " and ", in.max_seqlen_k);
}

// Starts at 0, never falls, ends within `rows`; no sequence is longer than `most`.
void check_offsets(const char* name, const at::Tensor& offsets, int64_t rows, const char* most_name,
                   int64_t most) {
  const auto* at = offsets.const_data_ptr<int32_t>();
  const int64_t last = offsets.numel() - 1;
  TORCH_CHECK_VALUE(at[0] == 0, name, " must begin with 0; it begins with ", at[0]);
  for (int64_t i = 0; i < last; ++i) {
    const int64_t length = int64_t{at[i + 1]} - at[i];
    TORCH_CHECK_VALUE(length >= 0, name, " must not fall: entry ", i + 1, " is ", at[i + 1],
                      " after ", at[i]);
    TORCH_CHECK_VALUE(length <= most, name, " has a sequence of ", length, " (entry ", i,
                      "), longer than ", most_name, "=", most);
  }
  TORCH_CHECK_VALUE(at[last] <= rows, name, " ends with ", at[last], ", but there are only ", rows,
                    " rows");
}

}  // namespace

NamedTensors::NamedTensors(std::initializer_list<std::pair<const char*, OptionalTensor>> tensors) {
  each_.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    if (tensor) each_.push_back({name, *tensor});
  }
}

void NamedTensors::add(const NamedTensors& others) {
  each_.insert(each_.end(), others.begin(), others.end());
}

void NamedTensors::check_devices() const {
  const auto& [first_name, first] = each_.front();
  check_served_device(first_name, first);
  for (const auto& [name, tensor] : each_) {
    TORCH_CHECK_VALUE(tensor.device() == first.device(), name, " must be on the device of ",
                      first_name, ", ", first.device(), "; it is on ", tensor.device());
  }
}

void NamedTensors::refuse_gradients(const char* op) const {
  if (!c10::GradMode::is_enabled()) return;
  for (const auto& [name, tensor] : each_) {
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor.requires_grad(), name, " requires grad, but ", op,
                                " has no backward: call it under torch.no_grad(), or pass ", name,
                                ".detach()");
  }
}

NamedTensors FwdInputs::tensors() const {
  return {{"q", q},
          {"k", k},
          {"v", v},
          {"alibi_slopes", alibi_slopes},
          {"attn_bias", attn_bias},
          {"sinks", sinks},
          {"cu_seqlens_q", cu_seqlens_q},
          {"cu_seqlens_k", cu_seqlens_k},
          {"seqused_k", seqused_k},
          {"rng_state", rng_state}};
}

void check_served_device(const char* name, const at::Tensor& tensor) {
  const at::Device device = tensor.device();
#ifndef FLASHATTN_ROCM_TORCH_HIP
  TORCH_CHECK_VALUE(!tensor.is_cuda(), name, " is on ", device,
                    ", but this flashattn_rocm was built against a torch without ROCm: only cpu "
                    "tensors (on the simulated card) are served; for a card, install a ROCm build "
                    "of torch and build flashattn_rocm against it");
#endif
  TORCH_CHECK_VALUE(tensor.is_cpu() || tensor.is_cuda() || tensor.is_meta(), name, " is on ",
                    device,
                    "; allowed are cuda (an AMD GPU of a ROCm torch) and cpu (the simulated card)");
}

void check_gradients(const FwdInputs& in) {
  TORCH_CHECK_NOT_IMPLEMENTED(!in.alibi_slopes || !in.alibi_slopes->requires_grad(),
                              "alibi_slopes requires grad, which is not served yet; pass "
                              "alibi_slopes.detach()");
}

void check_asked(const FwdInputs& in, bool bias_gradient, bool sinks_gradient) {
  TORCH_CHECK_VALUE(!bias_gradient || (in.attn_bias && in.attn_bias->is_floating_point()),
                    "bias_gradient=True needs an attn_bias that is added to the scores");
  TORCH_CHECK_VALUE(!sinks_gradient || in.sinks, "sinks_gradient=True needs sinks");
}

FwdShape check_fwd(const FwdInputs& in) {
  in.tensors().check_devices();
  const bool varlen = in.varlen();
  const Named query{
      "q", "query",
      varlen ? "(total_q, num_heads, head_size)" : "(batch_size, seqlen_q, num_heads, head_size)",
      in.q};
  const char* const kv_dimensions = varlen ? "(total_k, num_heads_k, head_size)"
                                           : "(batch_size, seqlen_k, num_heads_k, head_size)";
  const Named key{"k", "key", kv_dimensions, in.k};
  const Named value{"v", "value", kv_dimensions, in.v};
  check_dtype(query, key);
  check_dtype(query, value);
  TORCH_CHECK_TYPE(
      element_of(in.q.scalar_type()).has_value(),
      "FlashAttention only support fp16 and bf16 data type, and fp32 here: q, k and v must have "
      "dtype torch.float16, torch.bfloat16 or torch.float32, they have ",
      dtype_name(in.q));
  const int64_t rank = varlen ? 3 : 4;
  for (const Named& argument : {query, key, value}) check_rank(argument, rank);
  check_varlen(in);
  if (!varlen) {
    check_same_size(query, key, 0, "batch_size");
    check_same_size(key, value, 0, "batch_size");
  }
  check_same_size(query, key, rank - 1, "head_dim");
  check_same_size(key, value, rank - 3, "seqlen_k");
  check_same_size(key, value, rank - 2, "number of heads");
  check_head_dim(query);
  check_head_dim(value);
  check_heads(query, key);
  for (const Named& argument : {query, key, value}) check_last_stride(argument);
  const FwdShape shape = shape_of(in);
  check_seqlen("q", shape.seqlen_q);
  check_seqlen("k", shape.seqlen_k);
  check_score_options(shape, in.softmax_scale, in.softcap, in.alibi_slopes, in.sinks);
  check_dropout(in);
  if (in.attn_bias) check_bias(*in.attn_bias, shape, varlen);
  if (in.seqused_k) check_index("seqused_k", *in.seqused_k, shape.batch);
  return shape;
}

void check_bwd(const FwdInputs& in, const FwdShape& shape, const at::Tensor& dout,
               const at::Tensor& out, const at::Tensor& softmax_lse) {
  check_gradients(in);
  const Named query{"q", "query", "", in.q};
  std::vector<c10::SymInt> out_sizes = in.q.sym_sizes().vec();
  out_sizes.back() = shape.head_dim_v;
  for (const Named& argument : {Named{"dout", "dout", "", dout}, Named{"out", "out", "", out}}) {
    check_dtype(query, argument);
    TORCH_CHECK_VALUE(argument.tensor.sym_sizes() == c10::SymIntArrayRef(out_sizes), argument.name,
                      " must have the shape of the forward's out, ", c10::SymIntArrayRef(out_sizes),
                      "; it has shape ", shape_name(argument.tensor));
    check_last_stride(argument);
  }
  const std::vector<c10::SymInt> lse_sizes =
      in.varlen() ? std::vector<c10::SymInt>{shape.heads_q, shape.rows_q}
                  : std::vector<c10::SymInt>{shape.batch, shape.heads_q, shape.seqlen_q};
  TORCH_CHECK_TYPE(softmax_lse.scalar_type() == at::kFloat,
                   "softmax_lse must have dtype torch.float32; it has ", dtype_name(softmax_lse));
  TORCH_CHECK_VALUE(softmax_lse.sym_sizes() == c10::SymIntArrayRef(lse_sizes),
                    "softmax_lse must have shape ", c10::SymIntArrayRef(lse_sizes),
                    "; it has shape ", shape_name(softmax_lse));
  for (const at::Tensor* tensor : {&dout, &out, &softmax_lse}) {
    TORCH_CHECK_VALUE(tensor->device() == in.q.device(),
                      "dout, out and softmax_lse must be on the device of q, ", in.q.device(),
                      "; one is on ", tensor->device());
  }
}

void check_targets(const FwdInputs& in, const at::Tensor& dq, const at::Tensor& dk,
                   const at::Tensor& dv) {
  const auto check = [](const Named& target, const Named& of) {
    check_dtype(of, target);
    TORCH_CHECK_VALUE(target.tensor.sym_sizes() == of.tensor.sym_sizes(), target.name,
                      " must have the shape of ", of.name, ", ", shape_name(of.tensor),
                      "; it has shape ", shape_name(target.tensor));
    TORCH_CHECK_VALUE(target.tensor.device() == of.tensor.device(), target.name,
                      " must be on the device of ", of.name, ", ", of.tensor.device(),
                      "; it is on ", target.tensor.device());
    check_last_stride(target);
  };
  check({"dq", "dq", "", dq}, {"q", "query", "", in.q});
  check({"dk", "dk", "", dk}, {"k", "key", "", in.k});
  check({"dv", "dv", "", dv}, {"v", "value", "", in.v});
}

void check_score_options(const FwdShape& shape, std::optional<double> softmax_scale, double softcap,
                         const OptionalTensor& alibi_slopes, const OptionalTensor& sinks) {
  check_scale(softmax_scale);
  TORCH_CHECK_VALUE(std::isfinite(softcap) && softcap >= 0.0,
                    "softcap must be finite and not negative; it is ", softcap);
  if (alibi_slopes) check_alibi(*alibi_slopes, shape);
  if (sinks) check_sinks(*sinks, shape);
}

void check_lengths(const FwdInputs& in) {
  if (in.varlen()) {
    check_offsets("cu_seqlens_q", *in.cu_seqlens_q, in.q.size(0), "max_seqlen_q",
                  in.max_seqlen_q.expect_int());
    check_offsets("cu_seqlens_k", *in.cu_seqlens_k, in.k.size(0), "max_seqlen_k",
                  in.max_seqlen_k.expect_int());
  }
  if (!in.seqused_k) return;
  const auto* used = in.seqused_k->const_data_ptr<int32_t>();
  for (int64_t i = 0; i < in.seqused_k->numel(); ++i) {
    const int64_t held = in.varlen() ? in.cu_seqlens_k->const_data_ptr<int32_t>()[i + 1] -
                                           in.cu_seqlens_k->const_data_ptr<int32_t>()[i]
                                     : in.k.size(1);
    TORCH_CHECK_VALUE(used[i] >= 0 && used[i] <= held, "seqused_k[", i, "]=", used[i],
                      " must be between 0 and the ", held, " keys of its sequence");
  }
}

}  // namespace flashattn
