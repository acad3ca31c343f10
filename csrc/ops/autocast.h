// The ops under torch.autocast: q, k and v take its dtype first, as in torch's own attention.
#pragma once

#include "ops/append_kv.h"
#include "ops/attn_probs.h"
#include "ops/decode.h"
#include "ops/fwd.h"

namespace flashattn {

FwdResult fwd_autocast(FLASHATTN_FWD_PARAMETERS);
at::Tensor attn_probs_autocast(FLASHATTN_ATTN_PROBS_PARAMETERS);

// What meets a KV cache takes the cache's dtype, which the cache itself cannot change; fp16 for a
// cache of bytes.
DecodeResult decode_autocast(FLASHATTN_DECODE_PARAMETERS);
at::Tensor append_kv_autocast(FLASHATTN_APPEND_PARAMETERS);

}  // namespace flashattn
