// torch.ops.flashattn_rocm: schemas, and which function serves which dispatch key.
#include <torch/library.h>

#include "ops/append_kv.h"
#include "ops/attn_probs.h"
#include "ops/autocast.h"
#include "ops/autograd.h"
#include "ops/bwd.h"
#include "ops/decode.h"
#include "ops/fwd.h"
#include "ops/merge_states.h"

// The options that fwd and bwd share, in flash-attn's order where it has them.
#define FLASHATTN_OPTIONS                                                                       \
  "float? softmax_scale=None, bool causal=False, *, SymInt window_left=-1, "                    \
  "SymInt window_right=-1, bool top_left=False, float softcap=0.0, Tensor? alibi_slopes=None, " \
  "Tensor? attn_bias=None, Tensor? sinks=None, Tensor? cu_seqlens_q=None, "                     \
  "Tensor? cu_seqlens_k=None, Tensor? seqused_k=None, SymInt max_seqlen_q=0, SymInt "           \
  "max_seqlen_k=0, float dropout_p=0.0, Tensor? rng_state=None"

TORCH_LIBRARY(flashattn_rocm, m) {
  m.def("fwd(Tensor q, Tensor k, Tensor v, " FLASHATTN_OPTIONS
        ") -> (Tensor out, Tensor softmax_lse)",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "bwd(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor "
      "softmax_lse, " FLASHATTN_OPTIONS
      ", bool bias_gradient=False, bool sinks_gradient=False) -> "
      "(Tensor dq, Tensor dk, Tensor dv, Tensor dattn_bias, Tensor dsinks)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "bwd_into(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, "
      "Tensor(a!) dq, Tensor(b!) dk, Tensor(c!) dv, " FLASHATTN_OPTIONS ") -> ()",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "attn_probs(Tensor q, Tensor k, Tensor softmax_lse, float? softmax_scale=None, "
      "bool causal=False, *, SymInt window_left=-1, SymInt window_right=-1, bool top_left=False, "
      "float softcap=0.0, Tensor? alibi_slopes=None, Tensor? attn_bias=None, "
      "Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? seqused_k=None, "
      "SymInt max_seqlen_q=0, SymInt max_seqlen_k=0, float dropout_p=0.0, Tensor? rng_state=None) "
      "-> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "decode(Tensor q, Tensor k_cache, Tensor v_cache, float? softmax_scale=None, "
      "bool causal=False, *, SymInt window_left=-1, SymInt window_right=-1, float softcap=0.0, "
      "Tensor? alibi_slopes=None, Tensor? sinks=None, Tensor? cache_seqlens=None, "
      "SymInt seqlen_new=0, Tensor? cache_batch_idx=None, Tensor? cache_leftpad=None, "
      "Tensor? block_table=None, Tensor? cu_seqlens_q=None, SymInt max_seqlen_q=0, "
      "int num_splits=0, Tensor? k_scale=None, Tensor? v_scale=None) "
      "-> (Tensor out, Tensor softmax_lse)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "append_kv_(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, "
      "Tensor cache_seqlens, *, Tensor? q=None, Tensor? rotary_cos=None, "
      "Tensor? rotary_sin=None, bool rotary_interleaved=True, bool q_at_one_position=False, "
      "Tensor? cache_batch_idx=None, Tensor? block_table=None, Tensor(c!)? k_scale=None, "
      "Tensor(d!)? v_scale=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "merge_states(Tensor out_a, Tensor lse_a, Tensor out_b, Tensor lse_b) -> "
      "(Tensor out, Tensor softmax_lse)",
      {at::Tag::pt2_compliant_tag});
}

// ROCm torch calls its devices cuda; cpu tensors run on the simulator.
static void serve_device(torch::Library& m) {
  m.impl("fwd", &flashattn::fwd);
  m.impl("attn_probs", &flashattn::attn_probs);
  m.impl("bwd", &flashattn::bwd);
  m.impl("bwd_into", &flashattn::bwd_into);
  m.impl("decode", &flashattn::decode);
  m.impl("append_kv_", &flashattn::append_kv);
  m.impl("merge_states", &flashattn::merge_states);
}

TORCH_LIBRARY_IMPL(flashattn_rocm, CPU, m) { serve_device(m); }
TORCH_LIBRARY_IMPL(flashattn_rocm, CUDA, m) { serve_device(m); }

TORCH_LIBRARY_IMPL(flashattn_rocm, Meta, m) {
  m.impl("fwd", &flashattn::fwd_meta);
  m.impl("attn_probs", &flashattn::attn_probs_meta);
  m.impl("bwd", &flashattn::bwd_meta);
  m.impl("bwd_into", &flashattn::bwd_into_meta);
  m.impl("decode", &flashattn::decode_meta);
  m.impl("append_kv_", &flashattn::append_kv_meta);
  m.impl("merge_states", &flashattn::merge_states_meta);
}

TORCH_LIBRARY_IMPL(flashattn_rocm, Autograd, m) {
  m.impl("fwd", &flashattn::fwd_autograd);
  m.impl("bwd", &flashattn::bwd_autograd);
  m.impl("attn_probs", &flashattn::attn_probs_autograd);
  m.impl("decode", &flashattn::decode_autograd);
  m.impl("append_kv_", &flashattn::append_kv_autograd);
  m.impl("merge_states", &flashattn::merge_states_autograd);
}

static void serve_autocast(torch::Library& m) {
  m.impl("fwd", &flashattn::fwd_autocast);
  m.impl("attn_probs", &flashattn::attn_probs_autocast);
  m.impl("decode", &flashattn::decode_autocast);
  m.impl("append_kv_", &flashattn::append_kv_autocast);
}

TORCH_LIBRARY_IMPL(flashattn_rocm, AutocastCPU, m) { serve_autocast(m); }
TORCH_LIBRARY_IMPL(flashattn_rocm, AutocastCUDA, m) { serve_autocast(m); }
