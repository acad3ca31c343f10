#pragma once

#include "exec/wave.h"

namespace fasim {

// Reports `inst`, which `wave` has just executed, with the registers that it wrote.
void trace_instruction(Wave& wave, const Inst& inst, const uint32_t workgroup[3], TraceSink& sink);

}  // namespace fasim
