// A kernel of the package on torch's tensors: on the card, or on the simulator with its memory
// shown.
#pragma once

#include <mutex>
#include <string_view>

#include "ops/checks.h"
#include "ops/placement.h"
#include "runtime/code_object.h"
#include "runtime/host_memory.h"
#include "runtime/launch.h"

namespace flashattn {

// Launches on the simulator take turns. Its memory map belongs to the process: two threads that
// share a tensor would register its bytes twice, or the first to finish would take them from the
// other. That costs little, since each launch uses every core.
inline std::mutex simulator_turn;

// family: of code objects (runtime/package.h).
template <class Args>
void launch_kernel(const Placement& place, std::string_view kernel, const Grid& grid,
                   uint32_t threads, const Args& args, const TouchedMemory& touched,
                   const char* family = "kernels") {
  const HipFunction function = CodeObject::on(place.api, place.device, family).function(kernel);
  const LaunchTarget target{place.api, function, kernel, place.stream};
  if (place.backend != Backend::kSimulator) {
    launch(target, grid, threads, args);
    return;
  }
  const std::lock_guard turn(simulator_turn);
  const HostRegistration visible(place.api, touched);
  launch(target, grid, threads, args);
}

// Arguments that a kernel has changed in place: autograd then knows a saved one as stale.
void mark_written(const NamedTensors& tensors);

}  // namespace flashattn
