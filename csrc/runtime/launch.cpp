#include "runtime/launch.h"

#include <limits>

namespace flashattn {
namespace {

std::string describe(const LaunchTarget& target, const Grid& grid, uint32_t threads) {
  return "launching " + std::string(target.kernel) + " on a grid of " + std::to_string(grid.x) +
         " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z) + " workgroups of " +
         std::to_string(threads) + " threads";
}

// The dispatch packet counts threads, 32 bits a dimension.
bool fits_packet(const Grid& grid, uint32_t threads) {
  return uint64_t{grid.x} * threads <= std::numeric_limits<uint32_t>::max();
}

}  // namespace

void launch_untyped(const LaunchTarget& target, const Grid& grid, uint32_t threads, void* args) {
  if (!fits_packet(grid, threads)) {
    throw std::invalid_argument(describe(target, grid, threads) +
                                " is not possible: x holds at most 4294967295 threads");
  }
  void* parameters[] = {args};
  const HipStatus status =
      target.api.module_launch_kernel(target.function, grid.x, grid.y, grid.z, threads, 1, 1,
                                      /*dynamic LDS*/ 0, target.stream, parameters, nullptr);
  if (status != kHipSuccess) {
    target.api.check(status, "hipModuleLaunchKernel", describe(target, grid, threads));
  }
}

}  // namespace flashattn
