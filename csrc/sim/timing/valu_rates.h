// How long vector ALU instructions hold their SIMD.
#pragma once

#include <cstdint>

#include "isa/opcodes.h"
#include "timing/card_timing.h"

namespace fasim {

// Clocks of one wave64 instruction.
uint32_t valu_clocks(const OpcodeRow& row, const CardTiming& card);

}  // namespace fasim
