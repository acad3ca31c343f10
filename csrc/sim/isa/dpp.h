// DPP control strings as lane maps.
#pragma once

#include <string_view>

#include "isa/inst.h"

namespace fasim {

// Sets dpp_lane and dpp_in_range from e.g. "quad_perm:[1,0,3,2]" or "row_shr:1". False when
// `control` is no DPP control.
bool apply_dpp_control(std::string_view control, Modifiers& modifiers);

// Lanes enabled by row_mask (bit per 16 lanes) and bank_mask (bit per 4 lanes of a row).
uint64_t dpp_lane_mask(unsigned row_mask, unsigned bank_mask);

}  // namespace fasim
