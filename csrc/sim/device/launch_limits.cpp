#include "device/launch_limits.h"

namespace fasim {
namespace {

constexpr const char* kAxis[3] = {"x", "y", "z"};

std::optional<BrokenLimit> broken_grid(const Card& card, const LaunchShape& shape) {
  const uint32_t grid_limit[3] = {card.max_grid_x, card.max_grid_y, card.max_grid_z};
  for (int i = 0; i < 3; ++i) {
    const std::string grid =
        std::string("gridDim.") + kAxis[i] + "=" + std::to_string(shape.grid[i]);
    const std::string block =
        std::string("blockDim.") + kAxis[i] + "=" + std::to_string(shape.block[i]);
    if (shape.grid[i] == 0 || shape.grid[i] > grid_limit[i])
      return BrokenLimit{LimitKind::configuration,
                         grid + ", allowed: 1 to " + std::to_string(grid_limit[i])};
    if (shape.block[i] == 0 || shape.block[i] > card.max_group_threads)
      return BrokenLimit{LimitKind::configuration,
                         block + ", allowed: 1 to " + std::to_string(card.max_group_threads)};
    // The dispatch packet counts work-items in 32 bits.
    if (uint64_t{shape.grid[i]} * shape.block[i] > UINT32_MAX)
      return BrokenLimit{LimitKind::configuration,
                         grid + " times " + block + " is " +
                             std::to_string(uint64_t{shape.grid[i]} * shape.block[i]) +
                             " work-items, allowed: up to 4294967295"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<BrokenLimit> broken_limit(const Card& card, const KernelMetadata& kernel,
                                        const LaunchShape& shape) {
  if (auto broken = broken_grid(card, shape)) return broken;
  const uint32_t threads = shape.threads();
  if (threads > card.max_group_threads)
    return BrokenLimit{LimitKind::configuration, "a workgroup of " + std::to_string(threads) +
                                                     " threads, allowed: up to " +
                                                     std::to_string(card.max_group_threads)};
  const uint64_t lds = uint64_t{kernel.group_segment_bytes} + shape.dynamic_lds;
  if (lds > card.lds_bytes)
    return BrokenLimit{LimitKind::lds, "LDS of a workgroup is " + std::to_string(lds) + " bytes (" +
                                           std::to_string(kernel.group_segment_bytes) +
                                           " static + " + std::to_string(shape.dynamic_lds) +
                                           " dynamic), allowed: up to " +
                                           std::to_string(card.lds_bytes)};
  if (threads > kernel.max_group_threads)
    return BrokenLimit{LimitKind::kernel_build,
                       "a workgroup of " + std::to_string(threads) +
                           " threads, but the kernel is built for up to " +
                           std::to_string(kernel.max_group_threads) +
                           " (amdgpu_flat_work_group_size, __launch_bounds__)"};
  return std::nullopt;
}

}  // namespace fasim
