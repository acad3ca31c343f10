#include "ops/python_tile.h"

#include <string>
#include <vector>

#include "core/lds_budget.h"

namespace py = pybind11;
using namespace pybind11::literals;

namespace flashattn {
namespace {

// The words of an enum, in the order of its values.
using Words = std::vector<const char*>;
const Words kKv = {"apart", "in_turns"};
const Words kOperands = {"streamed", "on_demand"};
const Words kRescale = {"lazy", "always"};
const Words kAccess = {"chunks", "elements"};
const Words kScores = {"plain", "modified"};
const Words kElement = {"f16", "bf16", "f32"};
const Words kGradient = {"dq", "dkdv"};

template <class Enum>
Enum parse(const py::dict& row, const char* key, const Words& words) {
  const auto word = row[key].cast<std::string>();
  for (size_t i = 0; i < words.size(); ++i)
    if (word == words[i]) return static_cast<Enum>(i);
  std::string known;
  for (const char* each : words) known += (known.empty() ? "'" : " or '") + std::string(each) + "'";
  throw py::value_error(std::string(key) + "='" + word + "' must be " + known);
}

template <class Enum>
const char* word(Enum value, const Words& words) {
  return words[static_cast<size_t>(value)];
}

}  // namespace

Tile tile_of(const py::dict& row) {
  const auto number = [&](const char* key) { return row[key].cast<int>(); };
  const int head_dim = number("head_dim");
  return {.head_dim = head_dim,
          .head_dim_v = number("head_dim_v") == 0 ? head_dim : number("head_dim_v"),
          .block_m = number("block_m"),
          .block_n = number("block_n"),
          .waves = number("waves"),
          .p_keys = number("p_keys"),
          .kv = parse<KvBuffers>(row, "kv", kKv),
          .operands = parse<Operands>(row, "operands", kOperands),
          .rescale = parse<Rescale>(row, "rescale", kRescale),
          .access = parse<Access>(row, "access", kAccess),
          .scores = parse<Scores>(row, "scores", kScores)};
}

Element element_of(const py::dict& row) { return parse<Element>(row, "element", kElement); }

Gradient gradient_of(const py::dict& row) { return parse<Gradient>(row, "gradient", kGradient); }

FwdKernel fwd_kernel_of(const py::dict& row) {
  const auto clocks = row["clocks"].cast<py::dict>();
  const auto number = [&](const char* key) { return clocks[key].cast<int>(); };
  return {.name = PyUnicode_AsUTF8(row["name"].cast<py::str>().ptr()),
          .tile = tile_of(row),
          .element = element_of(row),
          .workgroups_per_cu = row["workgroups_per_cu"].cast<int>(),
          .clocks = {number("fixed"), number("step"), number("step_full")},
          .split = row["split"].cast<bool>()};
}

py::dict row_of(const FwdKernel& kernel) {
  const Tile& tile = kernel.tile;
  const FwdClocks& clocks = kernel.clocks;
  return py::dict("name"_a = kernel.name, "head_dim"_a = tile.head_dim,
                  "head_dim_v"_a = tile.head_dim_v, "block_m"_a = tile.block_m,
                  "block_n"_a = tile.block_n, "waves"_a = tile.waves, "p_keys"_a = tile.p_keys,
                  "kv"_a = word(tile.kv, kKv), "operands"_a = word(tile.operands, kOperands),
                  "rescale"_a = word(tile.rescale, kRescale),
                  "access"_a = word(tile.access, kAccess), "scores"_a = word(tile.scores, kScores),
                  "element"_a = word(kernel.element, kElement),
                  "workgroups_per_cu"_a = kernel.workgroups_per_cu, "split"_a = kernel.split,
                  "lds_bytes"_a = lds_bytes(tile, kernel.element),
                  "clocks"_a = py::dict("fixed"_a = clocks.fixed, "step"_a = clocks.step,
                                        "step_full"_a = clocks.step_full));
}

}  // namespace flashattn
