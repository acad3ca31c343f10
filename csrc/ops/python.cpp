// The extension module flashattn_rocm._C: importing it registers torch.ops.flashattn_rocm; its few
// functions say what the package found. None of them runs at import.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/bwd_args.h"
#include "core/grid.h"
#include "core/lds_budget.h"
#include "ops/decode_plan.h"
#include "ops/dispatch.h"
#include "ops/python_tile.h"
#include "ops/tuned_table.h"
#include "runtime/hip_api.h"
#include "runtime/package.h"

namespace py = pybind11;
using namespace pybind11::literals;

namespace flashattn {
namespace {

Backend parse_backend(const std::string& name) {
  if (name == backend_name(Backend::kCard)) return Backend::kCard;
  if (name == backend_name(Backend::kSimulator)) return Backend::kSimulator;
  throw py::value_error("backend must be \"hip\" or \"sim\"; got \"" + name + "\"");
}

py::dict describe_backend(const std::string& name) {
  const HipApi& api = HipApi::get(parse_backend(name));
  py::list devices;
  for (int device = 0; device < api.device_count(); ++device) {
    const DeviceInfo info = api.device_info(device);
    devices.append(py::dict("name"_a = info.name, "arch"_a = info.arch,
                            "compute_units"_a = info.compute_units));
  }
  return py::dict("library"_a = api.library(), "runtime_version"_a = api.runtime_version(),
                  "devices"_a = devices);
}

py::dict probe_hip_library(const std::string& path) {
  const HipApi api(open_library(path));
  return py::dict("library"_a = api.library(), "symbols"_a = HipApi::required_symbols());
}

py::list describe_fwd_kernels() {
  py::list rows;
  for (const FwdKernel& kernel : fwd_kernels()) rows.append(row_of(kernel));
  return rows;
}

template <LdsBudget (*budget_of)(const Tile&, Element)>
py::dict describe_lds_budget(const py::dict& row) {
  const LdsBudget budget = budget_of(tile_of(row), element_of(row));
  return py::dict("q"_a = budget.q, "kv"_a = budget.kv, "p"_a = budget.p,
                  "scales"_a = budget.scales, "total"_a = budget.total(),
                  "limit"_a = kLdsBytesPerWorkgroup);
}

struct Shape {
  int batch, seqlen_q, seqlen_k, heads_q, heads_kv, head_dim;
  bool causal;
};

FwdArgs args_of(const Shape& shape) {
  FwdArgs args{};
  args.batch = shape.batch;
  args.seqlen_q = shape.seqlen_q;
  args.seqlen_k = shape.seqlen_k;
  args.heads_q = shape.heads_q;
  args.heads_kv = shape.heads_kv;
  args.head_dim = args.head_dim_v = shape.head_dim;
  args.window_left = kMaxSeqlen;
  args.window_right = shape.causal ? 0 : kMaxSeqlen;
  return args;
}

py::list rank_fwd(int batch, int seqlen_q, int seqlen_k, int heads_q, int heads_kv, int head_dim,
                  bool causal, const std::string& element, bool chunks, bool changes_scores,
                  bool packed, int compute_units, const std::string& arch,
                  const std::optional<std::vector<py::dict>>& rows) {
  FwdProblem problem{args_of({batch, seqlen_q, seqlen_k, heads_q, heads_kv, head_dim, causal}),
                     element_of(py::dict("element"_a = element)),
                     chunks,
                     changes_scores,
                     arch,
                     compute_units};
  const int32_t on_the_card = 0;
  if (packed) problem.args.sequences.cu_seqlens_q = &on_the_card;
  std::vector<FwdKernel> kernels;
  for (const py::dict& row : rows.value_or(std::vector<py::dict>{}))
    kernels.push_back(fwd_kernel_of(row));
  py::list ranking;
  for (const FwdChoice& choice :
       rows ? rank_fwd_kernels(problem, kernels) : rank_fwd_kernels(problem)) {
    py::dict described = row_of(choice.kernel);
    described["workgroups"] = choice.workgroups;
    described["mean_steps"] = choice.mean_steps;
    described["estimated_clocks"] = choice.clocks;
    ranking.append(described);
  }
  return ranking;
}

KvFormat parse_format(const std::string& name) {
  for (const KvFormat format : {KvFormat::plain, KvFormat::int8, KvFormat::e4m3, KvFormat::e5m2})
    if (name == name_of(format)) return format;
  throw py::value_error("format must be \"plain\", \"int8\", \"e4m3\" or \"e5m2\"; got \"" + name +
                        "\"");
}

py::dict describe_decode_plan(int64_t batch, int64_t heads_kv, int64_t rows, int64_t keys,
                              int64_t columns, bool bf16, const std::string& format, int64_t rope,
                              bool chunks, int64_t num_splits, int compute_units,
                              bool own_lengths) {
  const DecodePlan plan = plan_decode(
      {batch, heads_kv, rows, keys, own_lengths, columns, rope, bf16 ? Element::bf16 : Element::f16,
       parse_format(format), chunks, compute_units},
      num_splits);
  return py::dict("kernel"_a = plan.kernel.name, "rows"_a = plan.kernel.tile.rows,
                  "tiles"_a = plan.tiles, "splits"_a = plan.splits, "at_once"_a = plan.at_once,
                  "slots"_a = plan.slots);
}

TensorView contiguous(uintptr_t address, int seqlen, int heads, int head_dim) {
  const int64_t row = int64_t{heads} * head_dim;
  return {.data = reinterpret_cast<void*>(address),
          .batch_stride = seqlen * row,
          .row_stride = row,
          .head_stride = head_dim};
}

using Addresses = std::map<std::string, uintptr_t>;

FwdArgs args_of(const Shape& shape, const Addresses& addresses, float softmax_scale) {
  FwdArgs args = args_of(shape);
  const auto of_queries = [&](const char* name) {
    return contiguous(addresses.at(name), shape.seqlen_q, shape.heads_q, shape.head_dim);
  };
  const auto of_keys = [&](const char* name) {
    return contiguous(addresses.at(name), shape.seqlen_k, shape.heads_kv, shape.head_dim);
  };
  args.q = of_queries("q");
  args.k = of_keys("k");
  args.v = of_keys("v");
  args.o = of_queries("out");
  args.lse = reinterpret_cast<float*>(addresses.at("lse"));
  args.lse_batch_stride = int64_t{shape.heads_q} * shape.seqlen_q;
  args.lse_head_stride = shape.seqlen_q;
  args.heads_together = 1;
  args.softmax_scale = softmax_scale;
  return args;
}

template <class Args>
py::dict describe_launch(const Grid& grid, const Tile& tile, const Args& args) {
  std::string bytes(sizeof args, '\0');
  std::memcpy(bytes.data(), &args, sizeof args);
  return py::dict("grid"_a = py::make_tuple(grid.x, grid.y, grid.z), "threads"_a = tile.threads(),
                  "arguments"_a = py::bytes(bytes));
}

// A launch that cuts query blocks, with room for the partial results of any plan.
py::dict split_launch(const FwdProblem& problem, const FwdKernel& kernel,
                      const Addresses& addresses) {
  const std::optional<FwdChoice> choice = estimate_fwd_split(problem, kernel);
  if (!choice) throw py::value_error("no query block of this grid would be cut");
  SplitFwdArgs args{.fwd = problem.args, .split = split_of(*choice->plan)};
  args.split.partial_o = reinterpret_cast<float*>(addresses.at("partial_o"));
  args.split.partial_lse = reinterpret_cast<float*>(addresses.at("partial_lse"));
  args.split.arrivals = reinterpret_cast<uint64_t*>(addresses.at("arrivals"));
  // The last wave of a query block clears its count: a launch can be repeated under its name.
  args.split.launch = 1;
  return describe_launch({choice->plan->workgroups(), 1, 1}, kernel.tile, args);
}

// What a launch of a tile's kernel takes, for a code object that is not in this build. A row with
// `split` is one that dispatch weighs.
py::dict fwd_launch(const py::dict& row, const Addresses& addresses, int batch, int seqlen_q,
                    int seqlen_k, int heads_q, int heads_kv, int head_dim, bool causal,
                    float softmax_scale, int compute_units) {
  const Tile tile = tile_of(row);
  const Element element = element_of(row);
  FwdArgs args = args_of({batch, seqlen_q, seqlen_k, heads_q, heads_kv, head_dim, causal},
                         addresses, softmax_scale);
  args.heads_together = heads_together(args, tile, element, compute_units);
  if (row.contains("split") && row["split"].cast<bool>()) {
    return split_launch({.args = args,
                         .element = element,
                         .rows_of_chunks = true,
                         .changes_scores = false,
                         .arch = "",
                         .compute_units = compute_units},
                        fwd_kernel_of(row), addresses);
  }
  return describe_launch(fwd_grid(args, tile), tile, args);
}

// The same of a kernel of the backward.
py::dict bwd_launch(const py::dict& row, const Addresses& addresses, int batch, int seqlen_q,
                    int seqlen_k, int heads_q, int heads_kv, int head_dim, bool causal,
                    float softmax_scale) {
  const Tile tile = tile_of(row);
  const Gradient gradient = gradient_of(row);
  BwdArgs args{};
  args.fwd = args_of({batch, seqlen_q, seqlen_k, heads_q, heads_kv, head_dim, causal}, addresses,
                     softmax_scale);
  args.dout = contiguous(addresses.at("dout"), seqlen_q, heads_q, head_dim);
  args.shift = reinterpret_cast<float*>(addresses.at("shift"));
  args.delta = reinterpret_cast<float*>(addresses.at("delta"));
  if (gradient == Gradient::dq) {
    args.dq = contiguous(addresses.at("dq"), seqlen_q, heads_q, head_dim);
  } else {
    args.dk = contiguous(addresses.at("dk"), seqlen_k, heads_kv, head_dim);
    args.dv = contiguous(addresses.at("dv"), seqlen_k, heads_kv, head_dim);
  }
  return describe_launch(bwd_grid(args.fwd, tile, gradient), tile, args);
}

// The source is kept for good: at the end of the process the interpreter ends before our statics.
void set_fwd_tuning(const py::function& source) {
  const auto* kept = new py::function(source);
  set_fwd_tuning_source([kept](const std::string& arch) {
    const py::gil_scoped_acquire python;
    std::vector<FwdTuning> tunings;
    for (const py::handle& each : (*kept)(arch)) {
      const auto [name, fixed, step, step_full] =
          each.cast<std::tuple<std::string, int, int, int>>();
      tunings.push_back({name, {fixed, step, step_full}});
    }
    return tunings;
  });
}

PYBIND11_MODULE(_C, m) {
  m.def("describe_backend", &describe_backend, "backend"_a,
        "Library, version and devices of \"hip\" or \"sim\"; opens the HIP runtime.");
  m.def("probe_hip_library", &probe_hip_library, "path"_a,
        "Resolves every HIP symbol that the package needs in the library at path.");
  m.def("fwd_kernels", &describe_fwd_kernels, "The rows of the build, with their own clocks.");
  m.def(
      "fwd_lds_budget", &describe_lds_budget<fwd_lds_budget>, "row"_a,
      "Bytes of LDS that a tile needs for Q, for K and V, and for P, their total, and the limit.");
  m.def("bwd_lds_budget", &describe_lds_budget<bwd_lds_budget>, "row"_a,
        "The same of a tile of the backward: for its own rows, the other side, and P or dS.");
  m.def("rank_fwd", &rank_fwd, "batch"_a, "seqlen_q"_a, "seqlen_k"_a, "heads_q"_a, "heads_kv"_a,
        "head_dim"_a, "causal"_a, "element"_a = "f16", "chunks"_a = true,
        "changes_scores"_a = false, "packed"_a = false, "compute_units"_a = 60, "arch"_a = "gfx906",
        "rows"_a = py::none(),
        "The rows that could serve a forward, the quickest by the dispatcher's estimate first; by "
        "default those of the build, with the clocks that are known for the arch.");
  m.def("plan_decode", &describe_decode_plan, "batch"_a, "heads_kv"_a, "rows"_a, "keys"_a,
        "columns"_a, "bf16"_a = false, "format"_a = "plain", "rope"_a = 0, "chunks"_a = true,
        "num_splits"_a = 0, "compute_units"_a = 60, "own_lengths"_a = false,
        "Kernel, rows of a tile, tiles and splits of a decode call, for `rows` query rows a key "
        "head and `keys` keys; and, where sequences with lengths of their own are balanced, how "
        "many splits the card runs at once and the grid has.");
  m.def("fwd_launch", &fwd_launch, "row"_a, "addresses"_a, "batch"_a, "seqlen_q"_a, "seqlen_k"_a,
        "heads_q"_a, "heads_kv"_a, "head_dim"_a, "causal"_a, "softmax_scale"_a, py::kw_only(),
        "compute_units"_a = 60,
        "Grid, threads and packed argument for contiguous q, k, v, out and lse at addresses; where "
        "the row says split, also partial_o, partial_lse and arrivals, with max_pieces slots.");
  m.def("bwd_launch", &bwd_launch, "row"_a, "addresses"_a, "batch"_a, "seqlen_q"_a, "seqlen_k"_a,
        "heads_q"_a, "heads_kv"_a, "head_dim"_a, "causal"_a, "softmax_scale"_a,
        "The same, with dout, shift, delta and what the row's gradient gives: dq, or dk and dv.");
  m.def("set_fwd_tuning_source", &set_fwd_tuning, "source"_a,
        "Takes a function of the arch that gives (kernel, fixed, step, step_full) in order.");
  m.def("set_fwd_tile", &set_fwd_tile, "name"_a,
        "Makes every forward that this kernel can serve use it; None ends that. Gives what it "
        "replaces.");
  m.def("simulated_instructions",
        [] { return HipApi::get(Backend::kSimulator).simulated_wave_instructions(); });
  m.def(
      "set_timed", [](bool timed) { HipApi::get(Backend::kSimulator).set_timed(timed); }, "timed"_a,
      "Whether the simulator times the launches that follow; slower, with the same results.");
  m.def(
      "profiles", [] { return HipApi::get(Backend::kSimulator).profiles(); },
      "The simulator's profiles of the launches since set_timed(True), a JSON list.");
  m.attr("max_pieces") = kMaxPieces;
  m.attr("kernels_path") = kernels_path();
  m.attr("built_for_rocm_torch") =
#ifdef FLASHATTN_ROCM_TORCH_HIP
      true;
#else
      false;
#endif
}

}  // namespace
}  // namespace flashattn
