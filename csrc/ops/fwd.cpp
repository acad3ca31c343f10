#include "ops/fwd.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>

#include <cmath>
#include <mutex>

#include "core/grid.h"
#include "ops/checks.h"
#include "ops/dispatch.h"
#include "ops/placement.h"
#include "ops/views.h"
#include "runtime/code_object.h"
#include "runtime/host_memory.h"
#include "runtime/launch.h"

namespace flashattn {
namespace {

// The real and the fake kernel allocate here, so that their strides agree.
FwdResult allocate_result(const at::Tensor& q, const FwdShape& shape) {
  at::Tensor out = at::empty_like(q);  // q's layout, as upstream
  if (out.sym_stride(-1) != 1) out = at::empty_like(q, at::MemoryFormat::Contiguous);
  at::Tensor lse =
      at::empty_symint({shape.batch, shape.heads_q, shape.seqlen_q}, q.options().dtype(at::kFloat));
  return {std::move(out), std::move(lse)};
}

int32_t as_int32(const c10::SymInt& size) {
  return static_cast<int32_t>(size.guard_int(__FILE__, __LINE__));  // check_fwd bounds it
}

bool rows_of_chunks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& out) {
  return has_rows_of_chunks(q) && has_rows_of_chunks(k) && has_rows_of_chunks(v) &&
         has_rows_of_chunks(out);
}

// One launch on the simulator. Its memory map belongs to the process: two threads that share a
// tensor would register its bytes twice, or the first to finish would take them from the other.
// So launches take turns; that costs little, since each one uses every core.
template <class Args>
void launch_on_simulator(const LaunchTarget& target, const Grid& grid, uint32_t threads,
                         const Args& args, const TouchedMemory& touched) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const HostRegistration visible(target.api, touched);
  launch(target, grid, threads, args);
}

}  // namespace

FwdResult fwd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
              std::optional<double> softmax_scale, bool causal) {
  const FwdShape shape = check_fwd(q, k, v, softmax_scale);
  const c10::DeviceGuard guard(q.device());
  FwdResult result = allocate_result(q, shape);
  const auto& [out, lse] = result;
  if (out.numel() == 0) return result;  // no rows: nothing to compute, and no empty grids in HIP

  const int32_t head_dim = as_int32(shape.head_dim);
  const FwdArgs args{
      .q = view_of(q),
      .k = view_of(k),
      .v = view_of(v),
      .o = view_of(out),
      .lse = lse.mutable_data_ptr<float>(),
      .batch = as_int32(shape.batch),
      .seqlen_q = as_int32(shape.seqlen_q),
      .seqlen_k = as_int32(shape.seqlen_k),
      .heads_q = as_int32(shape.heads_q),
      .heads_kv = as_int32(shape.heads_kv),
      .head_dim = head_dim,
      .head_dim_v = head_dim,
      .window_left = kMaxSeqlen,
      .window_right = causal ? 0 : kMaxSeqlen,
      .softmax_scale = static_cast<float>(softmax_scale.value_or(1.0 / std::sqrt(head_dim))),
  };
  const Placement place = placement_of(q);
  const FwdKernel& kernel = *choose_fwd_kernel({args, rows_of_chunks(q, k, v, out),
                                                place.api.device_info(place.device).compute_units})
                                 .kernel;
  const HipFunction function = CodeObject::on(place.api, place.device).function(kernel.name);
  const LaunchTarget target{place.api, function, kernel.name, place.stream};
  const Grid grid = fwd_grid(args, kernel.tile);
  const auto threads = static_cast<uint32_t>(kernel.tile.threads());
  if (place.backend == Backend::kSimulator) {
    launch_on_simulator(target, grid, threads, args,
                        {.inputs = {byte_extent(q), byte_extent(k), byte_extent(v)},
                         .outputs = {byte_extent(out), byte_extent(lse)}});
  } else {
    launch(target, grid, threads, args);
  }
  return result;
}

FwdResult fwd_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   std::optional<double> softmax_scale, bool /*causal*/) {
  return allocate_result(q, check_fwd(q, k, v, softmax_scale));
}

FwdResult fwd_autograd(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       std::optional<double> softmax_scale, bool causal) {
  check_devices(q, k, v);  // here fake tensors still tell their device; below they are all meta
  check_no_grad(q, k, v);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("flashattn_rocm::fwd", "")
                             .typed<decltype(fwd)>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(q, k, v, softmax_scale, causal);
}

}  // namespace flashattn
