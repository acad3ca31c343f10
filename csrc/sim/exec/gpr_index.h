// VGPR indexing: MODE.gpr_idx_en lets M0 displace the VGPRs that a VALU instruction names.
#pragma once

#include "exec/wave.h"
#include "isa/inst.h"

namespace fasim {

// `inst` with the VGPRs that it uses while indexing is on. Throws SimFault when one of them is
// beyond the wave's allocation.
Inst index_vgprs(const Wave& wave, const Inst& inst);

}  // namespace fasim
