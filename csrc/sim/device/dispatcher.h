// Runs all workgroups of one launch on the host's cores.
#pragma once

#include <span>

#include "exec/launch.h"

namespace fasim {

// How many host threads run workgroups: FLASHATTN_SIM_THREADS, else one for each hardware thread.
// Throws std::runtime_error when the variable is no number of 1 or more.
unsigned worker_count();

// Returns when every workgroup has ended. After a fault no further workgroup is started, and the
// fault that came first is thrown (SimFault). With a trace sink everything runs on the calling
// thread, in order of workgroup index, so that the trace reads in that order.
WorkgroupStats dispatch(const Launch& launch, TraceSink* trace = nullptr);

// The same for some of the launch's workgroups, by linear index. `instructions`, of the same
// length, receives the wave instructions of each.
WorkgroupStats dispatch(const Launch& launch, std::span<const uint64_t> groups,
                        std::span<uint64_t> instructions);

}  // namespace fasim
