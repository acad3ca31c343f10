#include "ops/checks.h"

#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "ops/dispatch.h"

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

std::string dtype_name(const at::Tensor& tensor) {
  return "torch." + std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

std::string shape_name(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sym_sizes();
  return text.str();
}

void check_dtype(const Named& first, const Named& argument) {
  TORCH_CHECK_TYPE(argument.tensor.scalar_type() == first.tensor.scalar_type(), first.upstream,
                   " and ", argument.upstream, " must have the same dtype: ", first.name, " has ",
                   dtype_name(first.tensor), ", ", argument.name, " has ",
                   dtype_name(argument.tensor));
}

void check_rank(const Named& argument) {
  TORCH_CHECK_VALUE(argument.tensor.dim() == 4, argument.name, " must have shape ",
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

void check_head_dim(const Named& q) {
  const c10::SymInt head_dim = q.tensor.sym_size(3);
  TORCH_CHECK_VALUE(head_dim >= 1 && head_dim <= max_head_dim(),
                    "FlashAttention forward only supports head dimension at most ", max_head_dim(),
                    "; ", q.name, " has head_dim ", head_dim, " (shape ", shape_name(q.tensor),
                    ")");
}

void check_seqlen(const Named& argument) {
  TORCH_CHECK_VALUE(argument.tensor.sym_size(1) <= kMaxSeqlen, argument.name, " has a sequence of ",
                    argument.tensor.sym_size(1), "; allowed is at most ", kMaxSeqlen);
}

void check_heads(const Named& q, const Named& k) {
  const c10::SymInt heads_q = q.tensor.sym_size(2);
  const c10::SymInt heads_kv = k.tensor.sym_size(2);
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

}  // namespace

void check_devices(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK_VALUE(k.device() == q.device() && v.device() == q.device(),
                    "q, k and v must be on the same device: q is on ", q.device(), ", k on ",
                    k.device(), ", v on ", v.device());
#ifndef FLASHATTN_ROCM_TORCH_HIP
  TORCH_CHECK_VALUE(!q.is_cuda(), "q is on ", q.device(),
                    ", but this flashattn_rocm was built against a torch without ROCm: only cpu "
                    "tensors (on the simulated card) are served; for a card, install a ROCm build "
                    "of torch and build flashattn_rocm against it");
#endif
  TORCH_CHECK_VALUE(q.is_cpu() || q.is_cuda() || q.is_meta(), "q is on ", q.device(),
                    "; allowed are cuda (an AMD GPU of a ROCm torch) and cpu (the simulated card)");
}

void check_no_grad(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!c10::GradMode::is_enabled()) return;
  const auto refuse = [](const char* name, const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(!tensor.requires_grad(), name,
                      " requires grad, and flashattn_rocm has no backward yet; call it under "
                      "torch.no_grad() or pass ",
                      name, ".detach()");
  };
  refuse("q", q);
  refuse("k", k);
  refuse("v", v);
}

FwdShape check_fwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   std::optional<double> softmax_scale) {
  check_devices(q, k, v);
  const Named query{"q", "query", "(batch_size, seqlen_q, num_heads, head_size)", q};
  const Named key{"k", "key", "(batch_size, seqlen_k, num_heads_k, head_size)", k};
  const Named value{"v", "value", "(batch_size, seqlen_k, num_heads_k, head_size)", v};
  check_dtype(query, key);
  check_dtype(query, value);
  TORCH_CHECK_TYPE(q.scalar_type() == at::kHalf,
                   "FlashAttention only supports fp16 data type so far: q, k and v must have dtype "
                   "torch.float16, they have ",
                   dtype_name(q));
  for (const Named& argument : {query, key, value}) check_rank(argument);
  check_same_size(query, key, 0, "batch_size");
  check_same_size(query, key, 3, "head_dim");
  check_same_size(key, value, 0, "batch_size");
  check_same_size(key, value, 1, "seqlen_k");
  check_same_size(key, value, 2, "number of heads");
  check_same_size(key, value, 3, "head_dim");
  check_head_dim(query);
  check_seqlen(query);
  check_seqlen(key);
  check_heads(query, key);
  for (const Named& argument : {query, key, value}) check_last_stride(argument);
  check_scale(softmax_scale);
  return {q.sym_size(0), q.sym_size(1), k.sym_size(1), q.sym_size(2), k.sym_size(2), q.sym_size(3)};
}

}  // namespace flashattn
