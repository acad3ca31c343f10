#include "ops/append_kv.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <string>

#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/grid.h"
#include "ops/decode_plan.h"
#include "ops/kv_cache.h"
#include "ops/launch_kernel.h"
#include "ops/placement.h"
#include "ops/redispatch.h"
#include "ops/views.h"

namespace flashattn {
namespace {

struct AppendInputs {
  CacheInputs cache;
  const at::Tensor& k;
  const at::Tensor& v;
  const OptionalTensor& q;
  const OptionalTensor& cos;
  const OptionalTensor& sin;

  // What is written is the cache's contents.
  NamedTensors read() const {
    NamedTensors given{{"k", k}, {"v", v}, {"q", q}, {"rotary_cos", cos}, {"rotary_sin", sin}};
    given.add(cache.indices());
    return given;
  }
  NamedTensors tensors() const {
    NamedTensors given = read();
    given.add(cache.contents());
    return given;
  }
};

// Before its sizes are read.
c10::SymInt seqlen_of(const at::Tensor& k) {
  TORCH_CHECK_VALUE(k.dim() == 4,
                    "k must have shape (batch_size, seqlen_new, num_heads_k, head_size); it has "
                    "shape ",
                    shape_name(k));
  return k.sym_size(1);
}

#define FLASHATTN_APPEND_INPUTS \
  {{k_cache,                    \
    v_cache,                    \
    cache_seqlens,              \
    cache_batch_idx,            \
    {},                         \
    block_table,                \
    seqlen_of(k),               \
    k_scale,                    \
    v_scale},                   \
   k,                           \
   v,                           \
   q,                           \
   rotary_cos,                  \
   rotary_sin}

void check_new(const char* name, const at::Tensor& x, const at::Tensor& cache) {
  TORCH_CHECK_VALUE(
      x.dim() == 4 && x.sym_size(2) == cache.sym_size(2) && x.sym_size(3) == cache.sym_size(3),
      name, " must have shape (batch_size, seqlen_new, num_heads_k, head_size) like ",
      "the cache, whose shape is ", shape_name(cache), "; it has shape ", shape_name(x));
  TORCH_CHECK_VALUE(x.sym_numel() == 0 || x.sym_stride(-1) == 1,
                    "Input tensor must have contiguous last dimension: ", name, " has stride ",
                    x.sym_stride(-1));
}

void check_rotary(const AppendInputs& in) {
  TORCH_CHECK_VALUE(in.cos.has_value() == in.sin.has_value(),
                    "rotary_cos and rotary_sin must be given together");
  if (!in.cos) return;
  const at::Tensor& k = in.k;
  for (const auto& [name, angles] :
       {std::pair{"rotary_cos", *in.cos}, std::pair{"rotary_sin", *in.sin}}) {
    TORCH_CHECK_TYPE(angles.scalar_type() == k.scalar_type(), name,
                     " must have the same dtype as query: it has ", dtype_name(angles), ", k has ",
                     dtype_name(k));
    TORCH_CHECK_VALUE(angles.dim() == 2 && angles.is_contiguous() &&
                          angles.sym_size(0) == in.cos->sym_size(0) &&
                          angles.sym_size(1) == in.cos->sym_size(1),
                      name, " must be contiguous with shape (seqlen_ro, rotary_dim / 2), the same ",
                      "for both; it has shape ", shape_name(angles));
  }
  const c10::SymInt rotary_dim = in.cos->sym_size(1) * 2;
  TORCH_CHECK_VALUE(rotary_dim % 16 == 0,
                    "Only rotary dimensions divisible by 16 are currently supported; rotary_cos "
                    "has shape ",
                    shape_name(*in.cos));
  TORCH_CHECK_VALUE(rotary_dim <= k.sym_size(3), "rotary_dim must be <= head_size ", k.sym_size(3),
                    "; rotary_cos has shape ", shape_name(*in.cos));
  TORCH_CHECK_VALUE(in.cos->sym_size(0) >= in.cache.capacity(),
                    "cos/sin seqlen must be at least the seqlen of KV cache, ", in.cache.capacity(),
                    "; rotary_cos has shape ", shape_name(*in.cos));
}

void check(const AppendInputs& in) {
  in.tensors().check_devices();
  TORCH_CHECK_TYPE(in.k.scalar_type() == at::kHalf || in.k.scalar_type() == at::kBFloat16,
                   "FlashAttention only support fp16 and bf16 data type: k has ", dtype_name(in.k));
  TORCH_CHECK_TYPE(in.v.scalar_type() == in.k.scalar_type(),
                   "key and value must have the same dtype: k has ", dtype_name(in.k), ", v has ",
                   dtype_name(in.v));
  in.cache.check(in.k, in.k.sym_size(0));
  check_new("k", in.k, in.cache.k_cache);
  check_new("v", in.v, in.cache.v_cache);
  TORCH_CHECK_VALUE(in.k.sym_size(0) == in.v.sym_size(0) && in.k.sym_size(1) == in.v.sym_size(1),
                    "k and v must have as many rows: ", shape_name(in.k), " and ",
                    shape_name(in.v));
  check_rotary(in);
  if (!in.q) return;
  TORCH_CHECK_VALUE(in.cos.has_value(), "q is turned by rotary_cos and rotary_sin; they are None");
  TORCH_CHECK_VALUE(in.q->dim() == 4 && in.q->sym_size(0) == in.k.sym_size(0) &&
                        in.q->sym_size(3) == in.k.sym_size(3),
                    "q must have shape (batch_size, seqlen_q, num_heads, head_size) like k, ",
                    shape_name(in.k), "; it has shape ", shape_name(*in.q));
  TORCH_CHECK_TYPE(in.q->scalar_type() == in.k.scalar_type(),
                   "query and key must have the same "
                   "dtype: q has ",
                   dtype_name(*in.q), ", k has ", dtype_name(in.k));
  TORCH_CHECK_VALUE(in.q->sym_numel() == 0 || in.q->sym_stride(-1) == 1,
                    "Input tensor must have contiguous last dimension: q has stride ",
                    in.q->sym_stride(-1));
}

at::Tensor allocate_result(const AppendInputs& in) {
  if (!in.q) return at::empty({0}, in.k.options());
  return at::empty_symint(in.q->sym_sizes(), in.q->options());
}

AppendArgs arguments(const AppendInputs& in, const at::Tensor& turned, bool interleaved,
                     bool q_at_one_position) {
  AppendArgs args{};
  args.cache = in.cache.view();
  args.k = view_of(in.k);
  args.v = view_of(in.v);
  args.batch = static_cast<int32_t>(in.k.size(0));
  args.seqlen_new = static_cast<int32_t>(in.k.size(1));
  args.heads_kv = static_cast<int32_t>(in.k.size(2));
  args.head_dim = static_cast<int32_t>(in.k.size(3));
  args.head_dim_v = in.cache.latent() ? 0 : static_cast<int32_t>(in.v.size(3));  // part of k
  if (in.q) {
    args.q = view_of(*in.q);
    args.q_out = view_of(turned);
    args.seqlen_q = static_cast<int32_t>(in.q->size(1));
    args.heads_q = static_cast<int32_t>(in.q->size(2));
  }
  if (in.cos) {
    args.cos = in.cos->const_data_ptr();
    args.sin = in.sin->const_data_ptr();
    args.rotary_dim = static_cast<int32_t>(2 * in.cos->size(1));
    args.positions = static_cast<int32_t>(in.cos->size(0));
  }
  args.interleaved = interleaved;
  args.q_at_one_position = q_at_one_position;
  return args;
}

TouchedMemory touched_memory(const AppendInputs& in, const at::Tensor& turned) {
  TouchedMemory touched{.inputs = {}, .outputs = {byte_extent(turned)}};
  const NamedTensors written = in.cache.contents(), read = in.read();
  for (const auto& [name, tensor] : written) touched.outputs.push_back(byte_extent(tensor));
  for (const auto& [name, tensor] : read) touched.inputs.push_back(byte_extent(tensor));
  return touched;
}

}  // namespace

at::Tensor append_kv(FLASHATTN_APPEND_PARAMETERS) {
  const AppendInputs in FLASHATTN_APPEND_INPUTS;
  check(in);
  in.cache.check_values();
  const c10::DeviceGuard guard(k.device());
  at::Tensor turned = allocate_result(in);
  const AppendArgs args = arguments(in, turned, rotary_interleaved, q_at_one_position);
  const int32_t tokens = std::max(args.seqlen_new, args.seqlen_q);
  if (args.batch == 0 || tokens == 0) return turned;
  const KvFormat format = in.cache.format();
  const char* numbers =
      format == KvFormat::plain ? name_of(*element_of(k.scalar_type())) : name_of(format);
  const std::string name = std::string("flashattn_append_kv_") + numbers;
  launch_kernel(placement_of(k), name, grid_of(tokens, 1, args.batch), kAppendThreads, args,
                touched_memory(in, turned), "decode");
  mark_written(in.cache.contents());
  return turned;
}

at::Tensor append_kv_meta(FLASHATTN_APPEND_PARAMETERS) {
  const AppendInputs in FLASHATTN_APPEND_INPUTS;
  check(in);
  return allocate_result(in);
}

at::Tensor append_kv_autograd(FLASHATTN_APPEND_PARAMETERS) {
  const NamedTensors tensors = AppendInputs FLASHATTN_APPEND_INPUTS.tensors();
  tensors.check_devices();  // here fake tensors still tell their device; below they are all meta
  tensors.refuse_gradients("appending to a KV cache");
  static const auto op = find_op<decltype(append_kv)>("flashattn_rocm::append_kv_");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(FLASHATTN_APPEND_ARGUMENTS);
}

}  // namespace flashattn
