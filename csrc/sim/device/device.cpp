#include "device/device.h"

#include <cstring>
#include <new>

#include "check/global_shadow.h"
#include "check/strict_checks.h"
#include "device/dispatcher.h"
#include "device/timed_launch.h"

namespace fasim {
namespace {

// A buffer in device memory for as long as a launch lasts.
class DeviceBuffer {
 public:
  DeviceBuffer(AddressSpace& memory, size_t size, const char* what)
      : memory_(memory), data_(memory.allocate(size, what)) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~DeviceBuffer() { memory_.release(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void fill(std::span<const uint8_t> bytes) { std::memcpy(data_, bytes.data(), bytes.size()); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }

 private:
  AddressSpace& memory_;
  void* data_;
};

}  // namespace

WorkgroupStats Device::launch(const Kernel& kernel, const LaunchShape& shape,
                              std::span<const uint8_t> explicit_arguments, TraceSink* trace) {
  const std::vector<uint8_t> arguments = build_kernarg(kernel.metadata, shape, explicit_arguments);
  DeviceBuffer kernarg(memory_, arguments.size(), "kernel arguments");
  kernarg.fill(arguments);
  DeviceBuffer packet(memory_, 64, "dispatch packet");
  packet.fill(build_dispatch_packet(kernel, shape, kernarg.address()));

  Launch launch;
  launch.program = kernel.program;
  launch.descriptor = kernel.descriptor;
  launch.kernel_name = kernel.metadata.name;
  launch.entry = kernel.entry;
  launch.kernarg = kernarg.address();
  launch.kernarg_size = static_cast<uint32_t>(arguments.size());
  std::memcpy(launch.grid, shape.grid, sizeof(launch.grid));
  std::memcpy(launch.block, shape.block, sizeof(launch.block));
  launch.lds_bytes = kernel.metadata.group_segment_bytes + shape.dynamic_lds;
  launch.private_bytes_per_lane = scratch_bytes(kernel.metadata);
  launch.dispatch_packet = packet.address();
  launch.memory = &memory_;
  const bool timed = timed_ && trace == nullptr;
  launch.strict = !timed && strict_checks();
  GlobalShadow races(launch.grid);
  if (launch.strict) launch.races = &races;
  const WorkgroupStats stats = run(kernel, launch, timed, trace);
  wave_instructions_ += stats.wave_instructions;
  return stats;
}

WorkgroupStats Device::run(const Kernel& kernel, const Launch& launch, bool timed,
                           TraceSink* trace) {
  if (!timed) {
    const WorkgroupStats stats = dispatch(launch, trace);
    const std::lock_guard lock(clock_mutex_);
    ++clock_.untimed_launches;
    return stats;
  }
  const KernelResources resources{kernel.metadata.vgprs, kernel.metadata.sgprs, launch.lds_bytes,
                                  launch.block[0] * launch.block[1] * launch.block[2]};
  const LaunchProfile profile =
      timed_launch(timing_, launch, resources, occupancy(card_, resources), sampled_only_);
  const std::lock_guard lock(clock_mutex_);
  clock_.milliseconds += profile.milliseconds() + timing_.launch_us / 1e3;
  profiles_.push_back(to_json(profile));
  return {.wave_instructions = profile.instructions, .by_class = profile.timed.cus.instructions};
}

Device::Clock Device::clock() const {
  const std::lock_guard lock(clock_mutex_);
  return clock_;
}

void Device::set_timed(bool timed) {
  const std::lock_guard lock(clock_mutex_);
  if (timed && !timed_) profiles_.clear();
  timed_ = timed;
}

std::vector<std::string> Device::profiles() const {
  const std::lock_guard lock(clock_mutex_);
  return profiles_;
}

}  // namespace fasim
