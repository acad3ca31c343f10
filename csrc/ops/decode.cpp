#include "ops/decode.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/decode_tile.h"
#include "core/grid.h"
#include "ops/decode_plan.h"
#include "ops/fwd.h"
#include "ops/fwd_arguments.h"
#include "ops/kv_cache.h"
#include "ops/launch_kernel.h"
#include "ops/placement.h"
#include "ops/redispatch.h"
#include "ops/views.h"

namespace flashattn {
namespace {

constexpr const char* kFamily = "decode";
constexpr double kNoKey = -std::numeric_limits<double>::infinity();  // its log-sum-exp

struct DecodeInputs {
  const at::Tensor& q;
  CacheInputs cache;
  const OptionalTensor& alibi_slopes;
  const OptionalTensor& sinks;
  const OptionalTensor& cu_seqlens_q;
  c10::SymInt max_seqlen_q;

  bool packed() const { return cu_seqlens_q.has_value(); }

  NamedTensors tensors() const {
    NamedTensors given{
        {"q", q}, {"alibi_slopes", alibi_slopes}, {"sinks", sinks}, {"cu_seqlens_q", cu_seqlens_q}};
    given.add(cache.contents());
    given.add(cache.indices());
    return given;
  }
};

#define FLASHATTN_DECODE_INPUTS                                                               \
  {q,                                                                                         \
   {k_cache, v_cache, cache_seqlens, cache_batch_idx, cache_leftpad, block_table, seqlen_new, \
    k_scale, v_scale},                                                                        \
   alibi_slopes,                                                                              \
   sinks,                                                                                     \
   cu_seqlens_q,                                                                              \
   max_seqlen_q}

FwdShape shape_of(const DecodeInputs& in) {
  const at::Tensor& k = in.cache.k_cache;
  return {in.packed() ? in.cu_seqlens_q->sym_size(0) - 1 : in.q.sym_size(0),
          in.packed() ? in.q.sym_size(0) : in.q.sym_size(1),
          in.packed() ? in.max_seqlen_q : in.q.sym_size(1),
          in.cache.capacity(),
          in.q.sym_size(-2),
          k.sym_size(2),
          in.q.sym_size(-1),
          in.cache.v_cache.sym_size(3)};
}

void check_query(const DecodeInputs& in) {
  const at::Tensor& q = in.q;
  TORCH_CHECK_TYPE(q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16,
                   "FlashAttention only support fp16 and bf16 data type: q has ", dtype_name(q));
  TORCH_CHECK_VALUE(q.dim() == (in.packed() ? 3 : 4), "q must have shape ",
                    in.packed() ? "(total_q, num_heads, head_size)"
                                : "(batch_size, seqlen_q, num_heads, head_size)",
                    "; it has shape ", shape_name(q));
  TORCH_CHECK_VALUE(q.sym_numel() == 0 || q.sym_stride(-1) == 1,
                    "Input tensor must have contiguous last dimension: q has stride ",
                    q.sym_stride(-1));
  if (!in.packed()) return;
  TORCH_CHECK_VALUE(in.cu_seqlens_q->dim() == 1 && in.cu_seqlens_q->sym_size(0) >= 1,
                    "cu_seqlens_q must have shape (batch_size + 1,); it has shape ",
                    shape_name(*in.cu_seqlens_q));
  check_index("cu_seqlens_q", *in.cu_seqlens_q, in.cu_seqlens_q->sym_size(0));
  TORCH_CHECK_VALUE(in.max_seqlen_q >= 0, "max_seqlen_q must not be negative; it is ",
                    in.max_seqlen_q);
}

FwdShape check(const DecodeInputs& in, std::optional<double> softmax_scale, double softcap,
               int64_t num_splits) {
  in.tensors().check_devices();
  check_query(in);
  const c10::SymInt batch = in.packed() ? in.cu_seqlens_q->sym_size(0) - 1 : in.q.sym_size(0);
  in.cache.check(in.q, batch);
  const FwdShape shape = shape_of(in);
  TORCH_CHECK_VALUE(shape.head_dim == in.cache.k_cache.sym_size(3),
                    "q and k_cache must have the same head_dim: ", shape_name(in.q), " and ",
                    shape_name(in.cache.k_cache));
  const int most = max_decode_columns(in.cache.format());
  for (const c10::SymInt& columns : {shape.head_dim, shape.head_dim_v}) {
    TORCH_CHECK_VALUE(columns >= 1 && (columns <= most || in.cache.latent()),
                      "FlashAttention forward only supports head dimension at most ", most,
                      ", and ", kLatent + kRope, " where v_cache is k_cache[..., :", kLatent,
                      "]; got ", columns);
  }
  TORCH_CHECK_VALUE(shape.heads_kv == 0 ? shape.heads_q == 0 : shape.heads_q % shape.heads_kv == 0,
                    "Number of heads in key/value must divide number of heads in query: q has ",
                    shape.heads_q, " heads, k_cache has ", shape.heads_kv);
  TORCH_CHECK_VALUE(shape.seqlen_q <= kMaxSeqlen, "q has a sequence of ", shape.seqlen_q,
                    "; allowed is at most ", kMaxSeqlen);
  check_score_options(shape, softmax_scale, softcap, in.alibi_slopes, in.sinks);
  TORCH_CHECK_VALUE(num_splits >= 0 && num_splits <= kMaxSplits, "num_splits > ", kMaxSplits,
                    " not supported, nor is a negative one; num_splits=", num_splits);
  return shape;
}

// The real and the fake kernel allocate here, so that their strides agree.
DecodeResult allocate_result(const DecodeInputs& in, const FwdShape& shape) {
  std::vector<c10::SymInt> sizes = in.q.sym_sizes().vec();
  sizes.back() = shape.head_dim_v;
  at::Tensor out = at::empty_symint(sizes, in.q.options());
  const auto options = in.q.options().dtype(at::kFloat);
  at::Tensor lse = in.packed()
                       ? at::empty_symint({shape.heads_q, shape.rows_q}, options)
                       : at::empty_symint({shape.batch, shape.heads_q, shape.seqlen_q}, options);
  return {std::move(out), std::move(lse)};
}

DecodeArgs arguments(const DecodeInputs& in, const FwdShape& shape, const DecodeResult& result,
                     const at::Tensor& sinks) {
  const auto& [out, lse] = result;
  DecodeArgs args{};
  args.q = view_of(in.q);
  args.o = view_of(out);
  args.cache = in.cache.view();
  args.lse = lse.mutable_data_ptr<float>();
  args.sinks = sinks.defined() ? sinks.const_data_ptr<float>() : nullptr;
  if (in.alibi_slopes) {
    args.alibi_slopes = in.alibi_slopes->const_data_ptr<float>();
    args.alibi_batch_stride = in.alibi_slopes->dim() == 2 ? in.alibi_slopes->stride(0) : 0;
  }
  if (in.packed()) args.cu_seqlens_q = in.cu_seqlens_q->const_data_ptr<int32_t>();
  args.lse_batch_stride = in.packed() ? 0 : lse.stride(0);
  args.lse_head_stride = lse.stride(in.packed() ? 0 : 1);
  args.batch = as_int32(shape.batch);
  args.seqlen_q = as_int32(shape.seqlen_q);
  args.seqlen_new = as_int32(in.cache.seqlen_new);
  args.heads_q = as_int32(shape.heads_q);
  args.heads_kv = as_int32(shape.heads_kv);
  args.head_dim = as_int32(shape.head_dim);
  args.head_dim_v = as_int32(shape.head_dim_v);
  return args;
}

// Keys that one row can see at most.
int64_t most_keys(const DecodeArgs& args) {
  const int64_t window = int64_t{args.window_left} + args.window_right + args.seqlen_q;
  return std::min<int64_t>(args.cache.capacity, window);
}

// Many queries fill the card without splitting keys, and the forward's larger tiles read K and V
// less often; it knows neither pages, indices of sequences, nor left padding.
bool suits_forward(const DecodeInputs& in, const DecodeArgs& args, int64_t num_splits) {
  constexpr int64_t kQueries = 64, kWorkgroups = 120;
  const CacheInputs& cache = in.cache;
  if (in.packed() || cache.paged() || cache.batch_idx || cache.leftpad || num_splits > 1 ||
      cache.format() != KvFormat::plain || cache.latent()) {
    return false;
  }
  const int64_t blocks = int64_t{args.batch} * args.heads_q * (args.seqlen_q / kQueries);
  return blocks >= kWorkgroups && in.q.is_contiguous();  // its result then has our strides
}

void join_splits(const Placement& place, Element element, const DecodeArgs& args,
                 const TouchedMemory& touched) {
  JoinArgs joined{};
  joined.o = args.o;
  joined.partials = args.partials;
  joined.lse = args.lse;
  joined.sinks = args.sinks;
  const bool packed = args.cu_seqlens_q != nullptr, balanced = args.at_once > 0;
  joined.cu_seqlens_q = balanced ? args.cu_seqlens_q : nullptr;
  joined.lse_batch_stride = args.lse_batch_stride;
  joined.lse_head_stride = args.lse_head_stride;
  joined.batch = packed && !balanced ? 1 : args.batch;
  joined.heads_q = args.heads_q;
  joined.seqlen_q =
      packed && !balanced ? static_cast<int32_t>(args.lse_head_stride) : args.seqlen_q;
  joined.splits = args.splits;
  joined.head_dim_v = args.head_dim_v;
  const int strips = ceil_div(args.head_dim_v, kJoinColumns);
  constexpr int kManySplits = 8;                      // that a wave loads at once
  const int rows = joined.heads_q * joined.seqlen_q;  // of a batch item
  const bool few_rows = int64_t{joined.batch} * rows * strips <= device_info(place).compute_units;
  const bool together = few_rows && (balanced || args.splits > kManySplits);
  joined.waves_of_row = together ? kJoinWaves : 1;
  const Grid grid = grid_of(together ? rows : ceil_div(rows, kJoinWaves), strips, joined.batch);
  const std::string name = std::string("flashattn_join_splits_") + name_of(element);
  launch_kernel(place, name, grid, kJoinThreads, joined, touched, kFamily);
}

// Sequences have lengths that the card alone knows. But not where few of many have most queries:
// results of a split have room for the longest.
bool lengths_differ(const DecodeInputs& in, const DecodeArgs& args) {
  const bool of_keys = in.cache.seqlens || in.cache.leftpad;
  const int64_t room = int64_t{args.batch} * args.seqlen_q;
  return of_keys && (!in.packed() || room <= 2 * args.lse_head_stride);
}

void run(const DecodeInputs& in, const DecodeResult& result, DecodeArgs& args,
         const at::Tensor& sinks, int64_t num_splits) {
  const auto& [out, lse] = result;
  const at::Tensor& q = in.q;
  const Placement place = placement_of(q);
  const Element element = *element_of(q.scalar_type());
  const bool latent = in.cache.latent();
  const DecodeProblem problem{args.batch,
                              args.heads_kv,
                              int64_t{args.seqlen_q} * (args.heads_q / args.heads_kv),
                              most_keys(args),
                              lengths_differ(in, args),
                              latent ? args.head_dim_v : std::max(args.head_dim, args.head_dim_v),
                              latent ? kRope : 0,
                              element,
                              in.cache.format(),
                              in.cache.rows_of_chunks(),
                              device_info(place).compute_units};
  const DecodePlan plan = plan_decode(problem, num_splits);
  args.tiles = plan.tiles;
  args.splits = plan.splits;
  args.at_once = plan.at_once;

  TouchedMemory touched{.inputs = {}, .outputs = {byte_extent(out), byte_extent(lse)}};
  for (const auto& [name, tensor] : in.tensors()) touched.inputs.push_back(byte_extent(tensor));
  if (sinks.defined()) touched.inputs.push_back(byte_extent(sinks));
  at::Tensor partial_o, partial_lse, of_sequence;
  const bool balanced = plan.at_once > 0, joined = plan.joined(args.batch);
  if (joined) {
    const int64_t slots = balanced ? plan.slots : plan.splits;
    args.partials.rows = balanced ? int64_t{args.heads_q} * args.seqlen_q : lse.numel();
    partial_o = at::empty({slots, args.partials.rows, args.head_dim_v}, lse.options());
    partial_lse = at::empty({slots, args.partials.rows}, lse.options());
    args.partials.o = partial_o.mutable_data_ptr<float>();
    args.partials.lse = partial_lse.mutable_data_ptr<float>();
    touched.outputs.push_back(byte_extent(partial_o));
    touched.outputs.push_back(byte_extent(partial_lse));
    if (in.packed()) (balanced ? lse : partial_lse).fill_(kNoKey);  // rows past the last sequence
  }
  if (balanced) {
    of_sequence = at::empty({args.batch, sizeof(SlotRange)}, lse.options().dtype(at::kByte));
    args.partials.of_sequence = static_cast<SlotRange*>(of_sequence.mutable_data_ptr());
    touched.outputs.push_back(byte_extent(of_sequence));
  }
  const Grid grid = balanced
                        ? grid_of(args.tiles * static_cast<int32_t>(plan.slots), args.heads_kv, 1)
                        : grid_of(args.tiles * args.splits, args.heads_kv, args.batch);
  const auto threads = static_cast<uint32_t>(plan.kernel.tile.threads());
  launch_kernel(place, plan.kernel.name, grid, threads, args, touched, kFamily);
  if (joined) join_splits(place, element, args, touched);
}

}  // namespace

DecodeResult decode(FLASHATTN_DECODE_PARAMETERS) {
  const DecodeInputs in FLASHATTN_DECODE_INPUTS;
  const FwdShape shape = check(in, softmax_scale, softcap, num_splits);
  in.cache.check_values();
  const c10::DeviceGuard guard(q.device());
  DecodeResult result = allocate_result(in, shape);
  const auto& [out, lse] = result;
  if (in.packed()) out.zero_();  // rows past the last sequence belong to no workgroup
  if (lse.numel() == 0 || shape.seqlen_q == 0) return result;  // HIP has no empty grids
  const at::Tensor float_sinks = sinks ? sinks->to(at::kFloat).contiguous() : at::Tensor();
  DecodeArgs args = arguments(in, shape, result, float_sinks);
  args.window_left = window_side(window_left);
  args.window_right = causal ? 0 : window_side(window_right);
  if (suits_forward(in, args, num_splits)) {
    const OptionalTensor used =
        cache_seqlens ? OptionalTensor(at::add(*cache_seqlens, seqlen_new.expect_int()))
                      : std::nullopt;
    const OptionalTensor none;
    return fwd(q, k_cache, v_cache, softmax_scale, causal, window_left, window_right,
               /*top_left=*/false, softcap, alibi_slopes, none, sinks, none, none, used, 0, 0,
               /*dropout_p=*/0.0, none);
  }
  args.softmax_scale = static_cast<float>(softmax_scale.value_or(1.0 / std::sqrt(args.head_dim)));
  args.softcap = static_cast<float>(softcap);
  run(in, result, args, float_sinks, num_splits);
  return result;
}

DecodeResult decode_meta(FLASHATTN_DECODE_PARAMETERS) {
  const DecodeInputs in FLASHATTN_DECODE_INPUTS;
  return allocate_result(in, check(in, softmax_scale, softcap, num_splits));
}

DecodeResult decode_autograd(FLASHATTN_DECODE_PARAMETERS) {
  const NamedTensors tensors = DecodeInputs FLASHATTN_DECODE_INPUTS.tensors();
  tensors.check_devices();  // here fake tensors still tell their device; below they are all meta
  tensors.refuse_gradients("attention over a KV cache");
  static const auto op = find_op<decltype(decode)>("flashattn_rocm::decode");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(FLASHATTN_DECODE_ARGUMENTS);
}

}  // namespace flashattn
