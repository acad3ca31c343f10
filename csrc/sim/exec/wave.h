// The architectural state of one wave and what its workgroup shares.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "exec/launch.h"
#include "exec/memory_port.h"
#include "isa/inst.h"
#include "mem/poison.h"

namespace fasim {

inline constexpr uint32_t kLanes = 64;

// Hardware operand numbers of the named scalar registers.
inline constexpr uint16_t kFlatScratch = 102, kXnackMask = 104, kVcc = 106, kM0 = 124, kExec = 126;
inline constexpr uint32_t kScalarRegisters = 128;

// High dwords of the flat apertures (KFD on gfx9: 4 GiB each).
inline constexpr uint32_t kSharedAperture = 0x10000, kPrivateAperture = 0x20000;

// The MODE register: rounding in bits 3:0, denormals in bits 7:4 (f32, then f16 and f64).
struct FloatMode {
  uint32_t bits = 0xf0;
  bool flush_f32() const { return (bits & 0x30) != 0x30; }
  bool flush_f16_f64() const { return (bits & 0xc0) != 0xc0; }
  bool round_nearest_even() const { return (bits & 0xf) == 0; }
};

class RegisterCheck;
class WaveChecks;

struct Wave {
  enum class State : uint8_t { running, at_barrier, ended };

  uint32_t* vgpr = nullptr;  // row r starts at vgpr + r * kLanes, 64-byte aligned
  const Inst* pc = nullptr;  // the next instruction
  const ConstantRow* constants = nullptr;
  const Modifiers* modifiers = nullptr;
  alignas(64) std::array<uint32_t, kScalarRegisters> sgpr{};
  bool scc = false;
  bool special_mode = false;  // MODE asks for anything but IEEE arithmetic on the operands named
  bool dx10_clamp = true, ieee = true;
  bool indexed_vgprs = false;  // MODE.gpr_idx_en
  State state = State::running;
  FloatMode mode;
  std::array<uint64_t, kInstClasses> executed{};

  uint32_t vgprs = 0;                             // rows that the wave owns
  uint32_t initial_sgprs = 0, initial_vgprs = 0;  // from 0 up: written before the wave starts
  uint8_t* lds = nullptr;
  uint32_t lds_bytes = 0;
  MemoryPort* memory = nullptr;
  uint64_t scratch = 0;  // host address of this wave's private memory
  uint32_t scratch_bytes_per_lane = 0;
  const Program* program = nullptr;
  RegisterCheck* registers = nullptr;
  WaveChecks* checks = nullptr;  // null: the strict checks are off
  uint32_t index = 0;            // in the workgroup

  uint32_t* row(uint32_t r) { return vgpr + r * kLanes; }

  uint64_t read64(uint32_t number) const {
    uint64_t value;
    std::memcpy(&value, &sgpr[number], 8);
    return value;
  }
  void write64(uint32_t number, uint64_t value) { std::memcpy(&sgpr[number], &value, 8); }
  uint64_t exec() const { return read64(kExec); }
  uint64_t vcc() const { return read64(kVcc); }

  // Follows every change of mode, ieee or indexed_vgprs.
  void mode_changed() {
    special_mode = mode.flush_f32() || mode.flush_f16_f64() || !ieee || indexed_vgprs;
  }

  uint64_t instructions() const {
    uint64_t sum = 0;
    for (uint64_t n : executed) sum += n;
    return sum;
  }
};

}  // namespace fasim
