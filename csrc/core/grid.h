// The grid of a forward launch. The kernel undoes it in attention/work_item.h.
#pragma once

#include <cstdint>

#include "core/fwd_args.h"
#include "core/tile.h"

namespace flashattn {

struct Grid {
  uint32_t x, y, z;
};

// HIP allows 65535 workgroups in y and in z; a batch can be larger, so it is folded over both.
inline constexpr int32_t kBatchFold = 32768;

constexpr int32_t ceil_div(int32_t a, int32_t b) { return a / b + (a % b != 0); }

constexpr Grid fwd_grid(const FwdArgs& args, const Tile& tile) {
  const auto q_blocks = static_cast<uint32_t>(ceil_div(args.seqlen_q, tile.block_m));
  return {q_blocks * static_cast<uint32_t>(args.heads_q),
          static_cast<uint32_t>(args.batch < kBatchFold ? args.batch : kBatchFold),
          static_cast<uint32_t>(ceil_div(args.batch, kBatchFold))};
}

}  // namespace flashattn
