// The extension module flashattn_rocm._C: importing it registers torch.ops.flashattn_rocm; its few
// functions say what the package found. None of them runs at import.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "core/lds_budget.h"
#include "ops/dispatch.h"
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

std::optional<std::string> last_profile() {
  std::string profile = HipApi::get(Backend::kSimulator).last_profile();
  if (profile.empty()) return std::nullopt;
  return profile;
}

py::list describe_fwd_kernels() {
  py::list rows;
  for (const FwdKernel& kernel : fwd_kernels()) {
    const Tile& tile = kernel.tile;
    rows.append(py::dict("name"_a = kernel.name, "head_dim"_a = tile.head_dim,
                         "block_m"_a = tile.block_m, "block_n"_a = tile.block_n,
                         "waves"_a = tile.waves, "p_keys"_a = tile.p_keys,
                         "workgroups_per_cu"_a = kernel.workgroups_per_cu,
                         "element"_a = kernel.element == Element::f16 ? "f16" : "bf16",
                         "lds_bytes"_a = lds_bytes(tile, kernel.element)));
  }
  return rows;
}

py::list rank_fwd(int batch, int seqlen_q, int seqlen_k, int heads_q, int heads_kv, int head_dim,
                  bool causal, bool bf16, bool chunks, bool changes_scores, int compute_units) {
  FwdArgs args{};
  args.batch = batch;
  args.seqlen_q = seqlen_q;
  args.seqlen_k = seqlen_k;
  args.heads_q = heads_q;
  args.heads_kv = heads_kv;
  args.head_dim = args.head_dim_v = head_dim;
  args.window_left = kMaxSeqlen;
  args.window_right = causal ? 0 : kMaxSeqlen;
  py::list rows;
  for (const FwdChoice& choice : rank_fwd_kernels(
           {args, bf16 ? Element::bf16 : Element::f16, chunks, changes_scores, compute_units})) {
    rows.append(py::dict("name"_a = choice.kernel->name, "workgroups"_a = choice.workgroups,
                         "workgroups_per_cu"_a = choice.kernel->workgroups_per_cu,
                         "mean_steps"_a = choice.mean_steps, "clocks"_a = choice.clocks));
  }
  return rows;
}

PYBIND11_MODULE(_C, m) {
  m.def("describe_backend", &describe_backend, "backend"_a,
        "Library, version and devices of \"hip\" or \"sim\"; opens the HIP runtime.");
  m.def("probe_hip_library", &probe_hip_library, "path"_a,
        "Resolves every HIP symbol that the package needs in the library at path.");
  m.def("fwd_kernels", &describe_fwd_kernels, "The rows of the forward's dispatch table.");
  m.def("rank_fwd", &rank_fwd, "batch"_a, "seqlen_q"_a, "seqlen_k"_a, "heads_q"_a, "heads_kv"_a,
        "head_dim"_a, "causal"_a, "bf16"_a = false, "chunks"_a = true, "changes_scores"_a = false,
        "compute_units"_a = 60,
        "The rows that could serve a forward, the quickest by the dispatcher's estimate first.");
  m.def("set_fwd_tile", &set_fwd_tile, "name"_a,
        "Makes every forward that this kernel can serve use it; None ends that.");
  m.def("simulated_instructions",
        [] { return HipApi::get(Backend::kSimulator).simulated_wave_instructions(); });
  m.def(
      "set_timed", [](bool timed) { HipApi::get(Backend::kSimulator).set_timed(timed); }, "timed"_a,
      "Whether the simulator times the launches that follow; slower, with the same results.");
  m.def("last_profile", &last_profile,
        "The simulator's profile of the last timed launch as JSON; None if there is none.");
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
