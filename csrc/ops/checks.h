// What the ops accept. Used by the kernels for cpu and cuda tensors and by the fake (meta)
// kernel, so sizes are SymInt: an int for real tensors, maybe a symbol while torch.compile traces.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flashattn {

using OptionalTensor = std::optional<at::Tensor>;

// An op's tensors, by the names of its schema. Those that are not given are left out.
class NamedTensors {
 public:
  struct Each {
    const char* name;
    at::Tensor tensor;
  };

  NamedTensors(std::initializer_list<std::pair<const char*, OptionalTensor>> tensors);
  void add(const NamedTensors& others);

  auto begin() const { return each_.begin(); }
  auto end() const { return each_.end(); }

  // All where the first one is, and that is a device that this build serves.
  void check_devices() const;

  // None requires grad where gradients are recorded, for an op that has none.
  void refuse_gradients(const char* op) const;

 private:
  std::vector<Each> each_;
};

// All that flashattn_rocm::fwd takes; its schema (library.cpp) has the same names in the same
// order.
struct FwdInputs {
  const at::Tensor& q;
  const at::Tensor& k;
  const at::Tensor& v;
  std::optional<double> softmax_scale;
  bool causal;
  c10::SymInt window_left;   // negative: no bound
  c10::SymInt window_right;  // likewise; causal is 0
  bool top_left;
  double softcap;
  const OptionalTensor& alibi_slopes;
  const OptionalTensor& attn_bias;
  const OptionalTensor& sinks;
  const OptionalTensor& cu_seqlens_q;
  const OptionalTensor& cu_seqlens_k;
  const OptionalTensor& seqused_k;
  c10::SymInt max_seqlen_q;
  c10::SymInt max_seqlen_k;
  double dropout_p;
  const OptionalTensor& rng_state;  // int64 (seed, offset); with dropout_p 0 without effect

  bool varlen() const { return cu_seqlens_q.has_value(); }
  NamedTensors tensors() const;  // q, k and v first
};

// torch registers plain functions, so the list has to be written out once.
#define FLASHATTN_OPTION_PARAMETERS                                                              \
  std::optional<double> softmax_scale, bool causal, c10::SymInt window_left,                     \
      c10::SymInt window_right, bool top_left, double softcap,                                   \
      const flashattn::OptionalTensor &alibi_slopes, const flashattn::OptionalTensor &attn_bias, \
      const flashattn::OptionalTensor &sinks, const flashattn::OptionalTensor &cu_seqlens_q,     \
      const flashattn::OptionalTensor &cu_seqlens_k, const flashattn::OptionalTensor &seqused_k, \
      c10::SymInt max_seqlen_q, c10::SymInt max_seqlen_k, double dropout_p,                      \
      const flashattn::OptionalTensor &rng_state
#define FLASHATTN_OPTION_ARGUMENTS                                                              \
  softmax_scale, causal, window_left, window_right, top_left, softcap, alibi_slopes, attn_bias, \
      sinks, cu_seqlens_q, cu_seqlens_k, seqused_k, max_seqlen_q, max_seqlen_k, dropout_p,      \
      rng_state

#define FLASHATTN_FWD_PARAMETERS \
  const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, FLASHATTN_OPTION_PARAMETERS
#define FLASHATTN_FWD_ARGUMENTS q, k, v, FLASHATTN_OPTION_ARGUMENTS

#define FLASHATTN_BWD_PARAMETERS                                                         \
  const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, \
      const at::Tensor &out, const at::Tensor &softmax_lse, FLASHATTN_OPTION_PARAMETERS, \
      bool bias_gradient, bool sinks_gradient
#define FLASHATTN_BWD_ARGUMENTS \
  dout, q, k, v, out, softmax_lse, FLASHATTN_OPTION_ARGUMENTS, bias_gradient, sinks_gradient

// torch gives tensors that an op writes as plain references.
#define FLASHATTN_BWD_INTO_PARAMETERS                                                       \
  const at::Tensor &dout, const at::Tensor &q, const at::Tensor &k, const at::Tensor &v,    \
      const at::Tensor &out, const at::Tensor &softmax_lse, at::Tensor &dq, at::Tensor &dk, \
      at::Tensor &dv, FLASHATTN_OPTION_PARAMETERS

struct FwdShape {
  c10::SymInt batch;
  c10::SymInt rows_q;    // of the tensor: seqlen_q, or those of all sequences
  c10::SymInt seqlen_q;  // the longest
  c10::SymInt seqlen_k;
  c10::SymInt heads_q;
  c10::SymInt heads_kv;
  c10::SymInt head_dim;
  c10::SymInt head_dim_v;
};

// Throws TypeError or ValueError that names the argument, its value and what is allowed.
FwdShape check_fwd(const FwdInputs& inputs);

// Lengths that lie on the device: each within what is there. Reads them, so for cpu tensors only.
void check_lengths(const FwdInputs& inputs);

// Which of these gradients are asked for can be given.
void check_asked(const FwdInputs& inputs, bool bias_gradient, bool sinks_gradient);

// What the backward takes beside the forward's inputs, whose check comes first.
void check_bwd(const FwdInputs& inputs, const FwdShape& shape, const at::Tensor& dout,
               const at::Tensor& out, const at::Tensor& softmax_lse);

// Where gradients go: shapes, dtypes and devices of q, k and v, a contiguous last dimension.
void check_targets(const FwdInputs& inputs, const at::Tensor& dq, const at::Tensor& dk,
                   const at::Tensor& dv);

// What has no gradient: ALiBi slopes.
void check_gradients(const FwdInputs& inputs);

// For the checks of other ops: what every kind of attention takes.
void check_score_options(const FwdShape& shape, std::optional<double> softmax_scale, double softcap,
                         const OptionalTensor& alibi_slopes, const OptionalTensor& sinks);
void check_index(const char* name, const at::Tensor& index, const c10::SymInt& size);  // int32, 1-D
std::string dtype_name(const at::Tensor& tensor);
std::string shape_name(const at::Tensor& tensor);

// cuda tensors of a ROCm torch, cpu ones, or meta.
void check_served_device(const char* name, const at::Tensor& tensor);

}  // namespace flashattn
