// What the strict checks know about one wave's registers.
//
// Defined means: written since the wave started, from values that are defined themselves. As in
// MemorySanitizer, an undefined value may be copied, combined and thrown away; compilers do that
// all the time (unused halves, dead lanes, spills, wide loads used in part). It is a fault where it
// decides something: an address, a branch, EXEC, a lane number, or data stored to global memory.
// VGPRs are tracked by lane and dword: writing a part of a dword defines all of it. SGPRs are
// tracked by bit, because masks are. What scratch and global memory hold counts as defined.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "isa/inst.h"
#include "isa/program.h"
#include "isa/register_use.h"

namespace fasim {

// The load counters; a register may wait for both (FLAT).
enum class Counter : uint8_t { vm, lgkm };

// Why a register holds no defined value.
struct Origin {
  enum class From : uint8_t { itself, vgpr, sgpr, lds };
  From from = From::itself;
  uint32_t where = 0;  // register number or LDS address
};

struct RegisterState {
  static constexpr uint32_t kVgprs = 256, kScalars = 128;

  // Lanes that hold a defined value and wait for no load. The program's spare row is all ones.
  std::array<uint64_t, kVgprs> ready;
  std::array<uint64_t, 4> full;              // bit n: `ready` of row n is all ones
  std::array<uint64_t, kVgprs> after_load;   // `ready` as it will be; valid while loading
  std::array<uint8_t, kVgprs> loading;       // bit per Counter; `ready` is 0 then
  uint64_t any_dirty;                        // fold_scalars(dirty)
  std::array<uint64_t, 2> dirty;             // scalars with an undefined bit, or loading
  std::array<uint64_t, 2> loading_scalars;   // only ever wait for lgkmcnt
  std::array<uint32_t, kScalars> undefined;  // bits
  std::array<Origin, kVgprs> vgpr_origin;
  std::array<Origin, kScalars> sgpr_origin;

  // Everything undefined but the first registers and EXEC. Lanes outside `exec` do not exist, and
  // count as defined.
  void reset(uint32_t defined_sgprs, uint32_t defined_vgprs, uint64_t exec, const Program& program);

  bool is_loading(uint16_t scalar) const {
    return loading_scalars[scalar / 64] >> (scalar % 64) & 1;
  }
  uint64_t lanes(uint16_t row) const { return loading[row] ? after_load[row] : ready[row]; }
  void set_lanes(uint16_t row, uint64_t defined) {
    if (loading[row])
      after_load[row] = defined;
    else
      set_ready(row, defined);
  }
  bool loads_into(const Operand& rows) const {
    uint32_t any = 0;
    for (uint16_t r = rows.index; r < rows.index + rows.dwords; ++r) any |= loading[r];
    return any != 0;
  }
  // The rows of a load begin and end to wait.
  void start_loading(const Operand& rows, uint8_t counter, uint64_t lanes) {
    for (uint16_t r = rows.index; r < rows.index + rows.dwords; ++r) {
      after_load[r] = this->lanes(r) | lanes;
      ready[r] = 0;
      loading[r] |= counter;
      full[r / 64] &= ~(1ull << (r % 64));
    }
  }
  void stop_loading(const Operand& rows, uint8_t counter) {
    for (uint16_t r = rows.index; r < rows.index + rows.dwords; ++r) {
      loading[r] &= static_cast<uint8_t>(~counter);
      if (loading[r]) continue;
      const uint64_t defined = ready[r] = after_load[r];
      full[r / 64] |= static_cast<uint64_t>(defined == ~0ull) << (r % 64);
    }
  }
  void set_ready(uint16_t row, uint64_t defined) {
    ready[row] = defined;
    const uint64_t bit = 1ull << (row % 64);
    uint64_t& word = full[row / 64];
    word = ~defined ? word & ~bit : word | bit;
  }
  void set_undefined(uint16_t scalar, uint32_t bits, Origin origin);
  void set_loading(uint16_t scalar, bool is);

  Origin origin_of_vgpr(uint16_t row) const;
  Origin origin_of_scalar(uint16_t scalar) const;
};

std::string scalar_name(uint32_t number);
// "which was never written", or from what it derives.
std::string describe(const Origin& origin, const std::string& name);

}  // namespace fasim
