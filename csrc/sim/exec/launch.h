// What a dispatcher hands to the execution core, and what it gets back.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/fault.h"
#include "isa/inst.h"
#include "isa/program.h"
#include "mem/address_space.h"

namespace fasim {

// The 64-byte amd_kernel_descriptor of a code object, decoded.
struct KernelDescriptor {
  uint32_t group_segment_bytes = 0;    // static LDS
  uint32_t private_segment_bytes = 0;  // scratch per lane
  uint32_t kernarg_bytes = 0;
  int64_t entry_offset = 0;  // from the descriptor's own address
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;

  // `bytes` points to 64 readable bytes.
  static KernelDescriptor parse(const uint8_t* bytes);

  uint32_t vgprs() const { return ((rsrc1 & 0x3f) + 1) * 4; }
  uint32_t sgprs() const { return (((rsrc1 >> 6) & 0xf) + 1) * 8; }
  uint32_t float_mode() const { return (rsrc1 >> 12) & 0xff; }  // round f32, f16; denorm f32, f16
  bool dx10_clamp() const { return (rsrc1 >> 21) & 1; }
  bool ieee() const { return (rsrc1 >> 23) & 1; }
  bool scratch_enabled() const { return rsrc2 & 1; }
  uint32_t user_sgprs() const { return (rsrc2 >> 1) & 0x1f; }
  bool workgroup_id(int dimension) const { return (rsrc2 >> (7 + dimension)) & 1; }
  bool workgroup_info() const { return (rsrc2 >> 10) & 1; }
  uint32_t workitem_ids() const { return ((rsrc2 >> 11) & 3) + 1; }  // 1: x, 2: xy, 3: xyz
  bool uses_private_buffer() const { return properties & 1; }
  bool uses_dispatch_packet() const { return (properties >> 1) & 1; }
  bool uses_queue() const { return (properties >> 2) & 1; }
  bool uses_kernarg() const { return (properties >> 3) & 1; }
  bool uses_dispatch_id() const { return (properties >> 4) & 1; }
  bool uses_flat_scratch() const { return (properties >> 5) & 1; }
  bool uses_private_size() const { return (properties >> 6) & 1; }
};

class GlobalShadow;

struct Launch {
  const Program* program = nullptr;
  KernelDescriptor descriptor;
  std::string kernel_name;
  uint64_t entry = 0;    // address of the first instruction
  uint64_t kernarg = 0;  // address; the card may read kernarg_size bytes, rounded up to 16, there
  uint32_t kernarg_size = 0;
  uint32_t grid[3] = {1, 1, 1};   // workgroups
  uint32_t block[3] = {1, 1, 1};  // work-items per workgroup
  uint32_t lds_bytes = 0;         // static + dynamic
  uint32_t private_bytes_per_lane = 0;
  uint64_t dispatch_packet = 0;  // address of the 64-byte AQL packet; the card may read it
  const AddressSpace* memory = nullptr;
  bool strict = true;             // whether the strict checks are on
  GlobalShadow* races = nullptr;  // of this launch; null: races of workgroups are not looked for
};

struct WorkgroupStats {
  uint64_t wave_instructions = 0;
  std::array<uint64_t, kInstClasses> by_class{};  // index: InstClass

  WorkgroupStats& operator+=(const WorkgroupStats& other);
};

// One register after the instruction: all dwords of a scalar, or one VGPR's first active lanes.
struct TraceWrite {
  std::string_view bank;  // "s", "v", "vcc", "exec", "scc"
  uint32_t index = 0;
  uint32_t lane_count = 0;  // 1 for scalars
  std::array<uint8_t, 4> lanes{};
  std::array<uint32_t, 4> values{};
};

struct TraceRecord {
  uint32_t workgroup[3] = {0, 0, 0};
  uint32_t wave = 0;
  uint64_t pc = 0;
  uint64_t exec = 0;
  std::string_view disassembly;
  std::vector<TraceWrite> writes;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void instruction(const TraceRecord& record) = 0;
};

// Runs workgroups of one launch, one after another; one object per worker thread. Registers, LDS
// and scratch are allocated once and reused.
class WorkgroupRunner {
 public:
  // Throws SimFault when the kernel cannot run as described (register numbers beyond the
  // descriptor's allocation, no instruction at the entry, unsupported rounding mode, ...).
  explicit WorkgroupRunner(const Launch& launch);
  ~WorkgroupRunner();
  WorkgroupRunner(const WorkgroupRunner&) = delete;
  WorkgroupRunner& operator=(const WorkgroupRunner&) = delete;

  // Throws SimFault.
  WorkgroupStats run(uint32_t wx, uint32_t wy, uint32_t wz, TraceSink* trace = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fasim
