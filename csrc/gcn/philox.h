// Counter-based random numbers: Philox-4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// 128 random bits for a counter and a key. A round is two products of 32 by 32 bits and four xors;
// round keys of a uniform key cost no VALU.
__device__ inline pairs4 philox4x32_10(pairs4 counter, uint32_t key0, uint32_t key1) {
  constexpr int kRounds = 10;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Of two 16-bit numbers those whose random bits are above a limit, 0 for the others; `limit` has
// its number in both halves and is the same in all lanes. Written in C++ it becomes seven
// instructions.
__device__ inline uint32_t where_above(uint32_t pair, uint32_t bits, uint32_t limit) {
  uint32_t x;
  asm("v_pk_sub_u16 %0, %1, %2 clamp\n\t"
      "v_pk_min_u16 %0, %0, 1 op_sel_hi:[1,0]\n\t"
      "v_pk_mul_lo_u16 %0, %0, %3"
      : "=&v"(x)
      : "v"(bits), "s"(limit), "v"(pair));
  return x;
}

}  // namespace flashattn::gcn
