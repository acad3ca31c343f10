// Kernel launches by module function. A launch has ended when the call returns, so a fault of the
// kernel is the result of the launch itself; it does not spoil later calls.
#include <string>

#include "hip/abi.h"
#include "hip/api.h"
#include "hip/launch.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

void record(const void* event) {
  if (event != nullptr) Runtime::get().events.require(event)->recorded = true;
}

// The sizes of hipExtModuleLaunchKernel count work-items, not workgroups.
uint32_t groups(uint32_t work_items, uint32_t local, const char* axis) {
  if (local == 0 || work_items % local != 0)
    fail(hipErrorInvalidConfiguration,
         std::string("globalWorkSize") + axis + "=" + std::to_string(work_items) +
             ", allowed: multiples of localWorkSize" + axis + "=" + std::to_string(local));
  return work_items / local;
}

}  // namespace

FASIM_API hipError_t hipModuleLaunchKernel(const Kernel* function, unsigned grid_x, unsigned grid_y,
                                           unsigned grid_z, unsigned block_x, unsigned block_y,
                                           unsigned block_z, unsigned shared_bytes,
                                           const void* stream, void** params, void** extra) {
  return api(__func__, [&] {
    const auto kernel = Runtime::get().modules.require_function(function);
    const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    launch(*kernel, {shape, stream, params, extra});
  });
}

FASIM_API hipError_t hipExtModuleLaunchKernel(const Kernel* function, uint32_t global_x,
                                              uint32_t global_y, uint32_t global_z,
                                              uint32_t local_x, uint32_t local_y, uint32_t local_z,
                                              size_t shared_bytes, const void* stream,
                                              void** params, void** extra, const void* start,
                                              const void* stop, uint32_t) {
  return api(__func__, [&] {
    const auto kernel = Runtime::get().modules.require_function(function);
    const LaunchShape shape{{groups(global_x, local_x, "X"), groups(global_y, local_y, "Y"),
                             groups(global_z, local_z, "Z")},
                            {local_x, local_y, local_z},
                            static_cast<uint32_t>(shared_bytes)};
    record(start);
    launch(*kernel, {shape, stream, params, extra});
    record(stop);
  });
}

// HIP's header declares this function in C++, so compiled programs ask for the mangled name.
FASIM_API decltype(hipExtModuleLaunchKernel)
    _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j
    __attribute__((alias("hipExtModuleLaunchKernel")));

}  // namespace fasim::hip
