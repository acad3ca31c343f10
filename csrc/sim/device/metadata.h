// The msgpack note of a code object: what the compiler says of each kernel.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fasim {

struct KernelArgument {
  uint32_t offset = 0;
  uint32_t size = 0;
  std::string value_kind;  // "by_value", "global_buffer", "hidden_block_count_x", ...

  bool hidden() const { return value_kind.starts_with("hidden_"); }
};

struct KernelMetadata {
  std::string name;
  std::string symbol;  // of the kernel descriptor: name + ".kd"
  std::vector<KernelArgument> arguments;
  uint32_t kernarg_bytes = 0;          // explicit and hidden arguments
  uint32_t group_segment_bytes = 0;    // static LDS of a workgroup
  uint32_t private_segment_bytes = 0;  // scratch of a lane
  uint32_t max_group_threads = 0;
  uint32_t wavefront_size = 0;
  uint32_t sgprs = 0, vgprs = 0;
  uint32_t sgpr_spills = 0, vgpr_spills = 0;
  bool dynamic_stack = false;

  // Bytes from offset 0 that the caller of a launch fills.
  uint32_t explicit_bytes() const;
};

// Keyed by kernel name. Throws LoadError when the note cannot be decoded.
std::map<std::string, KernelMetadata> read_metadata(std::span<const uint8_t> msgpack);

}  // namespace fasim
