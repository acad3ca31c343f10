// One kernel launch with a typed argument.
#pragma once

#include <string>
#include <type_traits>

#include "core/grid.h"
#include "runtime/hip_api.h"

namespace flashattn {

struct LaunchTarget {
  const HipApi& api;
  HipFunction function;
  std::string_view kernel;  // its name, for error texts
  HipStream stream;
};

// args: address of the kernel's one argument. Returns when the launch is queued (on the simulator:
// done). Throws HipError that names the kernel and the grid.
void launch_untyped(const LaunchTarget& target, const Grid& grid, uint32_t threads, void* args);

template <class Args>
void launch(const LaunchTarget& target, const Grid& grid, uint32_t threads, Args args) {
  static_assert(std::is_trivially_copyable_v<Args>, "HIP copies the argument's bytes");
  launch_untyped(target, grid, threads, &args);
}

}  // namespace flashattn
