// VOP3, VOP3P, SDWA and DPP modifiers on whole rows; used by operands.cpp alone.
#pragma once

#include <cstdint>

#include "exec/operands.h"
#include "isa/opcodes.h"

namespace fasim {

// Applies every source modifier of source `i` to the operand at `row`; the result may be `buffer`
// (128 dwords, 64-byte aligned) or `row` itself.
const uint32_t* modify_source(const Wave& wave, const Inst& inst, const Modifiers& mods, int i,
                              const uint32_t* row, uint32_t* buffer);

// omod, clamp and the flush of denormals, on a fresh result.
void modify_result(const Wave& wave, const OpcodeRow& opcode, const Modifiers& mods, uint32_t* row);

// Merges a fresh result with the register's old value: SDWA destination select, kept halves.
void merge_result(Kind kind, const Modifiers& mods, const uint32_t* old, uint32_t* row);

}  // namespace fasim
