// A straight run of instructions without access to global memory, whose strict checks are one look.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fasim {

// When all registers named in it are defined in every lane and wait for no load, none of its
// instructions can be at fault or change that; but for LDS, whose contents are looked at when they
// are read.
struct Segment {
  std::array<uint64_t, 4> rows{};  // bit n: reads or writes VGPR n
  uint64_t scalars = 0;            // fold_scalars() of all
  uint32_t length = 0;             // in instructions
  bool counts_lgkm = false;        // no other load may be under lgkmcnt when it begins
  std::vector<uint32_t> loads;  // Inst indices of its LDS instructions that are on their way when
                                // it ends, oldest first
};

// The segments that start at an instruction; 0: none.
struct SegmentStart {
  uint32_t with_lds = 0, plain = 0;
};

}  // namespace fasim
