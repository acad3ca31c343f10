// From a memory instruction's operands to host pointers, one per lane, already checked.
#pragma once

#include <cstdint>

#include "exec/memory_port.h"
#include "exec/wave.h"

namespace fasim {

struct LanePointers {
  alignas(64) uint64_t host[kLanes];
  uint64_t lanes = 0;         // lanes that access memory
  uint64_t global = 0;        // of these, lanes that reach global memory
  uint64_t shared = 0;        // and lanes that reach LDS, by FLAT
  bool read_only = false;     // all of the latter in one range that kernels cannot write
  uint64_t out_of_range = 0;  // active lanes whose raw buffer access passes the last record

  uint8_t* operator[](uint32_t lane) const { return reinterpret_cast<uint8_t*>(host[lane]); }
};

struct AccessShape {
  uint32_t bytes = 4;  // per lane
  Access access = Access::read;
  uint32_t first_source = 0;  // index of the first address operand in Inst::src
  uint32_t saddr_source = 1;  // GLOBAL: index of the SGPR base
  uint32_t skip = 0;          // added to the address
  uint32_t alignment = 0;     // 0: bytes, at most 4
};

// Each resolves one access per active lane and throws SimFault for a lane that may not make it.
struct GlobalAddressing {
  static void resolve(Wave& wave, const Inst& inst, const AccessShape& shape, LanePointers& out);
};
struct FlatAddressing {
  static void resolve(Wave& wave, const Inst& inst, const AccessShape& shape, LanePointers& out);
};
struct BufferAddressing {
  static void resolve(Wave& wave, const Inst& inst, const AccessShape& shape, LanePointers& out);
};

}  // namespace fasim
