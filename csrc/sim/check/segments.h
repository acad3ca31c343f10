#pragma once

#include "isa/program.h"

namespace fasim {

// Fills Program::segments and Program::segment_at; `uses` and the branch targets are there already.
void find_segments(Program& program);

}  // namespace fasim
