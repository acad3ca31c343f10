// What the forward accepts. Used by the kernels for cpu and cuda tensors and by the fake (meta)
// kernel, so sizes are SymInt: an int for real tensors, maybe a symbol while torch.compile traces.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>

namespace flashattn {

struct FwdShape {
  c10::SymInt batch;
  c10::SymInt seqlen_q;
  c10::SymInt seqlen_k;
  c10::SymInt heads_q;
  c10::SymInt heads_kv;
  c10::SymInt head_dim;
};

// Throws TypeError or ValueError that names the argument, its value and what is allowed.
FwdShape check_fwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   std::optional<double> softmax_scale);

// All on one device, and on one that this build serves: cpu, or cuda of a ROCm torch.
void check_devices(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// There is no backward, so nothing that needs one may come in while grad mode is on.
void check_no_grad(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace flashattn
