// The switch of the strict checks: what is looked at beyond the bounds and alignment of memory.
#pragma once

namespace fasim {

// Whether launches run under the strict checks: FLASHATTN_SIM_CHECK, `on` when it is not set.
// Throws SimFault for any value but on and off.
bool strict_checks();

}  // namespace fasim
