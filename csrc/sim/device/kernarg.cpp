#include "device/kernarg.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace fasim {
namespace {

// High dwords of the flat apertures, as amdkfd sets them on gfx9 (LDS at 2^48, scratch at 2^49).
constexpr uint64_t kSharedBase = 0x10000, kPrivateBase = 0x20000;

constexpr uint16_t kPacketTypeKernelDispatch = 2;

// The metadata lists only the hidden arguments that the kernel uses, each with its offset; the
// names are those of code object versions 4 to 6. What is not here is a null pointer: printf and
// assert buffers, a heap, queues and multi-grid synchronisation do not exist on the simulated card.
std::map<std::string, uint64_t> hidden_values(const LaunchShape& shape) {
  const uint32_t dimensions = shape.grid[2] * shape.block[2] > 1   ? 3
                              : shape.grid[1] * shape.block[1] > 1 ? 2
                                                                   : 1;
  return {
      {"hidden_block_count_x", shape.grid[0]}, {"hidden_block_count_y", shape.grid[1]},
      {"hidden_block_count_z", shape.grid[2]}, {"hidden_group_size_x", shape.block[0]},
      {"hidden_group_size_y", shape.block[1]}, {"hidden_group_size_z", shape.block[2]},
      {"hidden_grid_dims", dimensions},        {"hidden_dynamic_lds_size", shape.dynamic_lds},
      {"hidden_shared_base", kSharedBase},     {"hidden_private_base", kPrivateBase},
  };
}

// A kernel with recursion or calls through pointers has no static bound; 16 KiB a lane is what ROCm
// sets aside for such kernels.
constexpr uint32_t kDynamicStackBytes = 16 * 1024;

template <typename T>
void put(std::vector<uint8_t>& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

}  // namespace

uint32_t scratch_bytes(const KernelMetadata& kernel) {
  return kernel.dynamic_stack ? std::max(kernel.private_segment_bytes, kDynamicStackBytes)
                              : kernel.private_segment_bytes;
}

std::vector<uint8_t> build_kernarg(const KernelMetadata& kernel, const LaunchShape& shape,
                                   std::span<const uint8_t> explicit_arguments) {
  std::vector<uint8_t> bytes(kernel.kernarg_bytes, 0);
  std::ranges::copy(explicit_arguments, bytes.begin());
  const std::map<std::string, uint64_t> values = hidden_values(shape);
  for (const KernelArgument& argument : kernel.arguments) {
    const auto value = values.find(argument.value_kind);
    if (value == values.end()) continue;
    std::memcpy(bytes.data() + argument.offset, &value->second,
                std::min<size_t>(argument.size, sizeof(uint64_t)));
  }
  return bytes;
}

std::vector<uint8_t> build_dispatch_packet(const Kernel& kernel, const LaunchShape& shape,
                                           uint64_t kernarg_address) {
  std::vector<uint8_t> packet(64, 0);
  put(packet, 0, kPacketTypeKernelDispatch);
  put(packet, 2, uint16_t{3});  // setup: number of grid dimensions
  for (size_t i = 0; i < 3; ++i) {
    put(packet, 4 + 2 * i, static_cast<uint16_t>(shape.block[i]));
    put(packet, 12 + 4 * i, shape.grid[i] * shape.block[i]);
  }
  put(packet, 24, scratch_bytes(kernel.metadata));
  put(packet, 28, kernel.metadata.group_segment_bytes + shape.dynamic_lds);
  put(packet, 32, kernel.descriptor_address);
  put(packet, 40, kernarg_address);
  return packet;
}

}  // namespace fasim
