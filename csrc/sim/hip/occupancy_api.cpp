// Occupancy queries.
#include "device/occupancy.h"

#include <algorithm>
#include <string>

#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

int active_groups(const Kernel& kernel, uint32_t threads, size_t dynamic_lds) {
  const Card& card = Runtime::get().device.card();
  const size_t lds = kernel.metadata.group_segment_bytes + dynamic_lds;
  if (threads > kernel.metadata.max_group_threads || lds > card.lds_bytes) return 0;
  const KernelResources resources{kernel.metadata.vgprs, kernel.metadata.sgprs,
                                  static_cast<uint32_t>(lds), threads};
  return static_cast<int>(occupancy(card, resources).groups_per_cu);
}

void max_active(int* groups, const Kernel& kernel, int threads, size_t dynamic_lds) {
  const auto most = static_cast<int>(Runtime::get().device.card().max_group_threads);
  if (threads <= 0 || threads > most)
    fail(hipErrorInvalidValue,
         "blockSize=" + std::to_string(threads) + ", allowed: 1 to " + std::to_string(most));
  *groups = active_groups(kernel, static_cast<uint32_t>(threads), dynamic_lds);
}

// The block size that keeps most waves on a CU, the largest one among equals; and as many blocks as
// fill the card.
void best_block(int* grid, int* block, const Kernel& kernel, size_t dynamic_lds, int limit) {
  require(grid, "gridSize");
  require(block, "blockSize");
  const Card& card = Runtime::get().device.card();
  uint32_t most = std::min(kernel.metadata.max_group_threads, card.max_group_threads);
  if (limit > 0) most = std::min(most, static_cast<uint32_t>(limit));
  *grid = *block = 0;
  uint32_t best_waves = 0;
  for (uint32_t threads = std::min(card.wave_size, most); threads <= most;
       threads += card.wave_size) {
    const auto groups = static_cast<uint32_t>(active_groups(kernel, threads, dynamic_lds));
    const uint32_t waves = groups * ((threads + card.wave_size - 1) / card.wave_size);
    if (waves == 0 || waves < best_waves) continue;
    best_waves = waves;
    *block = static_cast<int>(threads);
    *grid = static_cast<int>(groups * card.compute_units);
  }
  if (*block == 0)
    fail(hipErrorInvalidValue, "kernel " + kernel.metadata.name + " fits no block size");
}

hipError_t max_active_of_function(const char* name, int* groups, const void* function, int threads,
                                  size_t dynamic_lds) {
  return api(name, [&] {
    require(groups, "numBlocks");
    max_active(groups, *Runtime::get().modules.require_function(function), threads, dynamic_lds);
  });
}

hipError_t max_active_of_host(const char* name, int* groups, const void* host, int threads,
                              size_t dynamic_lds) {
  return api(name, [&] {
    require(groups, "numBlocks");
    max_active(groups, *Runtime::get().programs.require_kernel(host), threads, dynamic_lds);
  });
}

hipError_t best_of_function(const char* name, int* grid, int* block, const void* function,
                            size_t dynamic_lds, int limit) {
  return api(name, [&] {
    best_block(grid, block, *Runtime::get().modules.require_function(function), dynamic_lds, limit);
  });
}

}  // namespace

FASIM_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* groups,
                                                                        const void* function,
                                                                        int threads,
                                                                        size_t dynamic_lds) {
  return max_active_of_function(__func__, groups, function, threads, dynamic_lds);
}

FASIM_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* groups, const void* function, int threads, size_t dynamic_lds, unsigned) {
  return max_active_of_function(__func__, groups, function, threads, dynamic_lds);
}

FASIM_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, const void* host,
                                                                  int threads, size_t dynamic_lds) {
  return max_active_of_host(__func__, groups, host, threads, dynamic_lds);
}

FASIM_API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* groups, const void* host, int threads, size_t dynamic_lds, unsigned) {
  return max_active_of_host(__func__, groups, host, threads, dynamic_lds);
}

FASIM_API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block,
                                                             const void* function,
                                                             size_t dynamic_lds, int limit) {
  return best_of_function(__func__, grid, block, function, dynamic_lds, limit);
}

FASIM_API hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                                      const void* function,
                                                                      size_t dynamic_lds, int limit,
                                                                      unsigned) {
  return best_of_function(__func__, grid, block, function, dynamic_lds, limit);
}

FASIM_API hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* host,
                                                       size_t dynamic_lds, int limit) {
  return api(__func__, [&] {
    best_block(grid, block, *Runtime::get().programs.require_kernel(host), dynamic_lds, limit);
  });
}

}  // namespace fasim::hip
