// Tiles as Python sees them: dicts with the keys of a [[fwd]] or [[bwd]] row in configs/.
#pragma once

#include <pybind11/pybind11.h>

#include "core/kernel_table.h"

namespace flashattn {

// Throws KeyError for a missing key, ValueError for a word that a key does not know.
Tile tile_of(const pybind11::dict& row);
Element element_of(const pybind11::dict& row);
Gradient gradient_of(const pybind11::dict& row);

// As tile_of, with workgroups_per_cu and clocks; the name stays valid as long as the dict.
FwdKernel fwd_kernel_of(const pybind11::dict& row);

pybind11::dict row_of(const FwdKernel& kernel);

}  // namespace flashattn
