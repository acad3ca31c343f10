// Branches, calls, barriers, waits and the end of a wave.
#pragma once

#include "exec/wave.h"

namespace fasim {

// Runs an instruction that has no semantics here: always a fault.
void run_unknown(Wave& wave, const Inst& inst);

}  // namespace fasim
