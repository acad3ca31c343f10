// The ops under torch.autocast: q, k and v take its dtype first, as in torch's own attention.
#pragma once

#include "ops/attn_probs.h"
#include "ops/fwd.h"

namespace flashattn {

FwdResult fwd_autocast(FLASHATTN_FWD_PARAMETERS);
at::Tensor attn_probs_autocast(FLASHATTN_ATTN_PROBS_PARAMETERS);

}  // namespace flashattn
