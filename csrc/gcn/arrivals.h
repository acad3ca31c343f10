// Which of several waves comes last, by a word that they count in, and that nobody clears before.
//
// The word is meaningful only where its upper 56 bits are the name of the launch; whatever else the
// memory held counts as 0. The last wave leaves 0, so that a graph may replay the launch under its
// name. What others wrote before they came is seen by the last one (LLVM's AMDGPU memory model for
// gfx90x: stores are in L2 before the release's atomic, the acquire empties the L1 cache).
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "gcn/wave.h"

namespace flashattn::gcn {

__device__ inline bool comes_last(uint64_t* word, uint64_t launch, uint32_t waves) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  int last = 0;
  if (lane_id_anew() == 0) {
    uint64_t seen = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT), next;
    do {
      const uint64_t came = (seen >> 8 == launch ? seen & 0xff : 0) + 1;
      next = came == waves ? 0 : launch << 8 | came;
    } while (!__hip_atomic_compare_exchange_weak(word, &seen, next, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT));
    last = next == 0;
  }
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  return uniform(last) != 0;
}

}  // namespace flashattn::gcn
