// Finding and opening a libamdhip64.
#pragma once

#include <string>

namespace flashattn {

struct HipLibrary {
  void* handle;      // of dlopen, never closed: HIP does not survive being unloaded
  std::string path;  // full path of the file
};

// The HIP runtime that is already in the process, else the system's. Never the simulator.
HipLibrary open_card_library();

// The simulator of the package.
HipLibrary open_simulator_library();

// The library at a path.
HipLibrary open_library(const std::string& path);

}  // namespace flashattn
