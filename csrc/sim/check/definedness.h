// How undefined values spread through registers: the slow path of the strict checks, for
// instructions that read or write something undefined.
#pragma once

#include "check/register_state.h"
#include "exec/wave.h"

namespace fasim {

// A VALU opcode with a lane function. `use` gives its rule. Throws SimFault when an undefined
// lane reaches EXEC (v_cmpx).
void spread_through_lanes(const Wave& wave, const Inst& inst, const RegisterUse& use,
                          RegisterState& registers);

// v_readlane, v_readfirstlane, v_writelane, v_swap. Throws SimFault for an undefined lane number.
void spread_through_lane_move(const Wave& wave, const Inst& inst, RegisterState& registers);

// Scalar opcodes and branches. Throws SimFault for an undefined branch condition, target, EXEC or
// mode.
void spread_through_scalars(const Wave& wave, const Inst& inst, const RegisterUse& use,
                            RegisterState& registers);

// Throws SimFault, naming the first lane of `lanes` in which a row of `o` is undefined.
void require_defined_lanes(const Operand& o, uint64_t lanes, const char* use,
                           const RegisterState& registers);
// Throws SimFault when a scalar of `o` has an undefined bit.
void require_defined_scalar(const Operand& o, const char* use, const RegisterState& registers);

}  // namespace fasim
