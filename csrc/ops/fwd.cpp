#include "ops/fwd.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include "core/grid.h"
#include "ops/checks.h"
#include "ops/dispatch.h"
#include "ops/fwd_arguments.h"
#include "ops/launch_kernel.h"
#include "ops/placement.h"
#include "ops/views.h"

namespace flashattn {
namespace {

// The real and the fake kernel allocate here, so that their strides agree.
FwdResult allocate_result(const FwdInputs& in, const FwdShape& shape) {
  const at::Tensor& q = in.q;
  at::Tensor out;
  if (shape.head_dim == shape.head_dim_v) {
    out = empty_in_layout_of(q);
  } else {
    std::vector<c10::SymInt> sizes = q.sym_sizes().vec();
    sizes.back() = shape.head_dim_v;
    out = at::empty_symint(sizes, q.options());
  }
  const auto lse_options = q.options().dtype(at::kFloat);
  at::Tensor lse =
      in.varlen() ? at::empty_symint({shape.heads_q, shape.rows_q}, lse_options)
                  : at::empty_symint({shape.batch, shape.heads_q, shape.seqlen_q}, lse_options);
  return {std::move(out), std::move(lse)};
}

bool rows_of_chunks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& out) {
  return has_rows_of_chunks(q) && has_rows_of_chunks(k) && has_rows_of_chunks(v) &&
         has_rows_of_chunks(out);
}

TouchedMemory touched_by(const FwdInputs& in, const at::Tensor& sinks, const FwdResult& result) {
  const auto& [out, lse] = result;
  TouchedMemory touched{.inputs = {}, .outputs = {byte_extent(out), byte_extent(lse)}};
  for (const auto& [name, tensor] : in.tensors()) touched.inputs.push_back(byte_extent(tensor));
  if (sinks.defined()) touched.inputs.push_back(byte_extent(sinks));
  return touched;
}

// The next of kLaunches names. They begin anywhere, so that what another process left in memory is
// not taken for a count of ours.
uint64_t name_launch() {
  static std::atomic<uint64_t> launches = uint64_t{std::random_device{}()} << 24;
  return launches++ % kLaunches + 1;
}

// A launch that cuts query blocks along the keys.
void launch_split(const Placement& place, const FwdKernel& kernel, const SplitPlan& plan,
                  const FwdArgs& args, const at::TensorOptions& options, TouchedMemory touched) {
  const Tile& tile = kernel.tile;
  const auto floats = options.dtype(at::kFloat);
  const at::Tensor partial_o = at::empty({plan.slots, tile.block_m, tile.head_dim_v}, floats);
  const at::Tensor partial_lse = at::empty({plan.slots, tile.block_m}, floats);
  const at::Tensor arrivals = at::empty({plan.slots, tile.waves}, options.dtype(at::kLong));
  SplitFwdArgs split{.fwd = args, .split = split_of(plan)};
  split.split.partial_o = partial_o.mutable_data_ptr<float>();
  split.split.partial_lse = partial_lse.mutable_data_ptr<float>();
  split.split.arrivals = reinterpret_cast<uint64_t*>(arrivals.mutable_data_ptr<int64_t>());
  split.split.launch = name_launch();
  for (const at::Tensor& written : {partial_o, partial_lse, arrivals})
    touched.outputs.push_back(byte_extent(written));
  launch_kernel(place, kernel.name, {plan.workgroups(), 1, 1},
                static_cast<uint32_t>(tile.threads()), split, touched);
}

}  // namespace

FwdResult fwd(FLASHATTN_FWD_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  const FwdShape shape = check_fwd(in);
  if (q.is_cpu()) check_lengths(in);
  const c10::DeviceGuard guard(q.device());
  FwdResult result = allocate_result(in, shape);
  const auto& [out, lse] = result;
  // Rows past the last sequence belong to no workgroup.
  if (in.varlen()) out.zero_();
  // No rows: nothing to compute, and no empty grids in HIP.
  if (lse.numel() == 0 || shape.seqlen_q == 0) return result;

  const at::Tensor float_sinks = sinks ? sinks->to(at::kFloat).contiguous() : at::Tensor();
  FwdArgs args = fwd_arguments(in, shape, out, lse, float_sinks);
  const Placement place = placement_of(q);
  const DeviceInfo& device = device_info(place);
  const FwdProblem problem{args,
                           *element_of(q.scalar_type()),
                           rows_of_chunks(q, k, v, out),
                           changes_scores(in),
                           device.base_arch(),
                           device.compute_units};
  const FwdChoice choice = choose_fwd_kernel(problem);
  const FwdKernel& kernel = choice.kernel;
  args.heads_together = heads_together(args, kernel.tile, kernel.element, device.compute_units);
  TouchedMemory touched = touched_by(in, float_sinks, result);
  if (kernel.split) {
    launch_split(place, kernel, *choice.plan, args, q.options(), std::move(touched));
  } else {
    launch_kernel(place, kernel.name, fwd_grid(args, kernel.tile),
                  static_cast<uint32_t>(kernel.tile.threads()), args, touched);
  }
  return result;
}

FwdResult fwd_meta(FLASHATTN_FWD_PARAMETERS) {
  const FwdInputs in{FLASHATTN_FWD_ARGUMENTS};
  return allocate_result(in, check_fwd(in));
}

}  // namespace flashattn
