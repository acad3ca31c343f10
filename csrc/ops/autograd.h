// Derivatives of the ops for torch's autograd.
#pragma once

#include "ops/bwd.h"
#include "ops/fwd.h"

namespace flashattn {

// fwd whose out has a gradient, which bwd computes; softmax_lse has none.
FwdResult fwd_autograd(FLASHATTN_FWD_PARAMETERS);

// bwd whose results have none: to ask for a second derivative is an error.
BwdResult bwd_autograd(FLASHATTN_BWD_PARAMETERS);

}  // namespace flashattn
