// Where the installed package is: code objects and the simulator lie beside the extension.
#pragma once

#include <string>

namespace flashattn {

// Directory of the shared library that this code was linked into (flashattn_rocm/).
const std::string& package_dir();

// The offload bundles: lib/decode.hipfb holds what works on a KV cache, lib/kernels.hipfb the rest.
std::string kernels_path(const std::string& family = "kernels");
std::string simulator_path();  // lib/sim/libamdhip64.so

}  // namespace flashattn
