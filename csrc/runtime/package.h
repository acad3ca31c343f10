// Where the installed package is: code objects and the simulator lie beside the extension.
#pragma once

#include <string>

namespace flashattn {

// Directory of the shared library that this code was linked into (flashattn_rocm/).
const std::string& package_dir();

std::string kernels_path();    // lib/kernels.hipfb, the offload bundle
std::string simulator_path();  // lib/sim/libamdhip64.so

}  // namespace flashattn
