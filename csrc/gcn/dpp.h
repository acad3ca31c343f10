// Reductions over the 16 lanes of a DPP row, at the rate of plain VALU. __shfl_xor would go
// through LDS (ds_bpermute_b32) instead. Vega 7nm ISA, section "Data Parallel Processing".
#pragma once

#include <cstdint>

namespace flashattn::gcn {

namespace dpp {
inline constexpr int kQuadSwap1 = 0xB1;       // quad_perm:[1,0,3,2]
inline constexpr int kQuadSwap2 = 0x4E;       // quad_perm:[2,3,0,1]
inline constexpr int kRowHalfMirror = 0x141;  // lane i <- 7 - i in each half row
inline constexpr int kRowMirror = 0x140;      // lane i <- 15 - i

// Lanes that are off give 0.
template <int control>
__device__ inline uint32_t move_bits(uint32_t x) {
  constexpr int all_rows = 0xF, all_banks = 0xF;
  return __builtin_amdgcn_update_dpp(0, x, control, all_rows, all_banks, /*bound_ctrl=*/true);
}

template <int control>
__device__ inline float move(float x) {
  return __builtin_bit_cast(float, move_bits<control>(__builtin_bit_cast(uint32_t, x)));
}
}  // namespace dpp

// Each step joins groups that already agree, so a mirror serves as well as a rotation.
template <class Op>
__device__ inline float reduce_row16(float x, Op op) {
  x = op(x, dpp::move<dpp::kQuadSwap1>(x));
  x = op(x, dpp::move<dpp::kQuadSwap2>(x));
  x = op(x, dpp::move<dpp::kRowHalfMirror>(x));
  return op(x, dpp::move<dpp::kRowMirror>(x));
}

__device__ inline float max_row16(float x) {
  return reduce_row16(x, [](float a, float b) { return __builtin_fmaxf(a, b); });
}

__device__ inline float sum_row16(float x) {
  return reduce_row16(x, [](float a, float b) { return a + b; });
}

}  // namespace flashattn::gcn
