#include "ops/bwd_launches.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "core/grid.h"
#include "ops/bwd_dispatch.h"
#include "ops/fwd_arguments.h"
#include "ops/launch_kernel.h"
#include "ops/views.h"

namespace flashattn {
namespace {

bool rows_of_chunks(const Gradients& g) {
  for (const at::Tensor* tensor :
       {&g.in.q, &g.in.k, &g.in.v, &g.out, &g.dout, &g.dq, &g.dk, &g.dv}) {
    if (!has_rows_of_chunks(*tensor)) return false;
  }
  return true;
}

void advance(TensorView& view, int64_t elements, Element element) {
  view.data = static_cast<uint16_t*>(view.data) + elements * halves_of(element);
}

template <class T>
void advance(T*& pointer, int64_t elements) {
  if (pointer != nullptr) pointer += elements;
}

void advance_bias(ScoreChanges& scores, int64_t elements) {
  const int64_t bytes = scores.bias_type == BiasType::f32 ? 4 : 2;
  scores.bias = static_cast<const std::byte*>(scores.bias) + elements * bytes;
}

// The arguments for one batch item alone.
BwdArgs of_item(BwdArgs args, Element element, int64_t item) {
  FwdArgs& fwd = args.fwd;
  for (TensorView* view : {&fwd.q, &fwd.k, &fwd.v, &fwd.o, &args.dout, &args.dq})
    advance(*view, item * view->batch_stride, element);
  for (float** each : {&fwd.lse, &args.shift, &args.delta})
    advance(*each, item * fwd.lse_batch_stride);
  advance(fwd.scores.alibi_slopes, item * fwd.scores.alibi_batch_stride);
  advance(fwd.sequences.seqused_k, item);
  advance_bias(fwd.scores, item * fwd.scores.bias_batch_stride);
  fwd.dropout.first_head += static_cast<uint32_t>(item) * fwd.dropout.batch_stride;
  fwd.batch = 1;
  return args;
}

// The arguments for one query head alone.
BwdArgs of_head(BwdArgs args, Element element, int64_t head) {
  FwdArgs& fwd = args.fwd;
  const int64_t head_kv = head / (fwd.heads_q / fwd.heads_kv);
  for (TensorView* view : {&fwd.q, &fwd.o, &args.dout, &args.dq})
    advance(*view, head * view->head_stride, element);
  for (TensorView* view : {&fwd.k, &fwd.v}) advance(*view, head_kv * view->head_stride, element);
  for (float** each : {&fwd.lse, &args.shift, &args.delta})
    advance(*each, head * fwd.lse_head_stride);
  advance(fwd.scores.alibi_slopes, head);
  advance_bias(fwd.scores, head * fwd.scores.bias_head_stride);
  fwd.dropout.first_head += static_cast<uint32_t>(head);
  fwd.heads_q = fwd.heads_kv = 1;
  return args;
}

}  // namespace

BackwardLaunches::BackwardLaunches(const Gradients& gradients, const FwdShape& shape)
    : gradients_(gradients),
      place_(placement_of(gradients.in.q)),
      element_(*element_of(gradients.in.q.scalar_type())) {
  const at::Tensor& lse = gradients.lse;
  statistics_ = gradients.in.varlen() ? at::zeros({2, lse.numel()}, lse.options())
                                      : at::empty({2, lse.numel()}, lse.options());
  args_.fwd = fwd_arguments(gradients.in, shape, gradients.out, lse, {});
  args_.dout = view_of(gradients.dout);
  args_.dq = view_of(gradients.dq);
  args_.dk = view_of(gradients.dk);
  args_.dv = view_of(gradients.dv);
  args_.shift = statistics_.mutable_data_ptr<float>();
  args_.delta = args_.shift + lse.numel();
  if (!gradients.dbias.defined()) return;
  args_.dbias = gradients.dbias.mutable_data_ptr<float>();
  args_.dbias_batch_stride = gradients.dbias.stride(0);
  args_.dbias_head_stride = gradients.dbias.stride(1);
}

void BackwardLaunches::run() {
  launch_dq();
  launch(Gradient::dkdv, args_);
}

at::Tensor BackwardLaunches::delta() const { return statistics_[1].view(gradients_.lse.sizes()); }

// Batch items and heads that share a bias take turns, each adding to what the ones before left: the
// sum has one order.
void BackwardLaunches::launch_dq() {
  const at::Tensor& dbias = gradients_.dbias;
  const bool items_share = dbias.defined() && dbias.size(0) == 1;
  const bool heads_share = dbias.defined() && dbias.size(1) == 1;
  for (int64_t item = 0; item < (items_share ? args_.fwd.batch : 1); ++item) {
    const BwdArgs of_batch = items_share ? of_item(args_, element_, item) : args_;
    for (int64_t head = 0; head < (heads_share ? args_.fwd.heads_q : 1); ++head)
      launch(Gradient::dq, heads_share ? of_head(of_batch, element_, head) : of_batch);
  }
}

void BackwardLaunches::launch(Gradient gradient, BwdArgs args) {
  const DeviceInfo& device = device_info(place_);
  const FwdInputs& in = gradients_.in;
  const FwdProblem problem{args.fwd,           element_,           rows_of_chunks(gradients_),
                           changes_scores(in), device.base_arch(), device.compute_units};
  const BwdKernel* kernel = choose_bwd_kernel(problem, gradient);
  const int32_t d = args.fwd.head_dim, d_v = args.fwd.head_dim_v;
  TORCH_CHECK_NOT_IMPLEMENTED(kernel != nullptr, "there is no backward for head_dim ", d,
                              d_v == d ? "" : " with head_dim_v " + std::to_string(d_v), " in ",
                              dtype_name(in.q), " yet");
  const Grid grid = bwd_grid(args.fwd, kernel->tile, gradient);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;  // HIP has no empty grids
  args.fwd.heads_together =
      bwd_heads_together(args.fwd, kernel->tile, element_, gradient, device.compute_units);
  launch_kernel(place_, kernel->name, grid, static_cast<uint32_t>(kernel->tile.threads()), args,
                touched(gradient));
}

TouchedMemory BackwardLaunches::touched(Gradient gradient) const {
  const Gradients& g = gradients_;
  TouchedMemory memory;
  for (const auto& [name, each] : g.in.tensors()) memory.inputs.push_back(byte_extent(each));
  for (const at::Tensor* each : {&g.dout, &g.out, &g.lse})
    memory.inputs.push_back(byte_extent(*each));
  memory.outputs = {byte_extent(statistics_)};
  if (gradient == Gradient::dq) {
    memory.outputs.push_back(byte_extent(g.dq));
    if (g.dbias.defined()) memory.outputs.push_back(byte_extent(g.dbias));
  } else {
    for (const at::Tensor* each : {&g.dk, &g.dv}) memory.outputs.push_back(byte_extent(*each));
  }
  return memory;
}

}  // namespace flashattn
