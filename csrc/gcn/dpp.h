// Reductions over the 16 lanes of a DPP row, at the rate of plain VALU. __shfl_xor would go
// through LDS (ds_bpermute_b32) instead. Vega 7nm ISA, section "Data Parallel Processing".
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

namespace flashattn::gcn {

namespace dpp {
inline constexpr int kQuadSwap1 = 0xB1;       // quad_perm:[1,0,3,2]
inline constexpr int kQuadSwap2 = 0x4E;       // quad_perm:[2,3,0,1]
inline constexpr int kRowHalfMirror = 0x141;  // lane i <- 7 - i in each half row
inline constexpr int kRowMirror = 0x140;      // lane i <- 15 - i
inline constexpr int kRowHalfSwap = 0x128;    // row_ror:8, lane i <- i ^ 8
template <int n>
inline constexpr int kRowRotate = 0x120 + n;  // row_ror:n, lane i <- i - n modulo 16
template <int n>
inline constexpr int kRowShift = 0x110 + n;  // row_shr:n, lane i <- i - n; none for the first n

// Lanes that are off give 0.
template <int control>
__device__ inline uint32_t move_bits(uint32_t x) {
  constexpr int all_rows = 0xF, all_banks = 0xF;
  return __builtin_amdgcn_update_dpp(0, x, control, all_rows, all_banks, /*bound_ctrl=*/true);
}

template <int control, class T>
__device__ inline T move(T x) {
  return __builtin_bit_cast(T, move_bits<control>(__builtin_bit_cast(uint32_t, x)));
}

// Lane i of a row gets x of lane i - 1, and lane 0 `first`.
__device__ inline float from_lane_before(float x, float first) {
  constexpr int row_shr_1 = 0x111, all_rows = 0xF, all_banks = 0xF;
  return __builtin_bit_cast(
      float, __builtin_amdgcn_update_dpp(__builtin_bit_cast(int, first), __builtin_bit_cast(int, x),
                                         row_shr_1, all_rows, all_banks, /*bound_ctrl=*/false));
}
}  // namespace dpp

// Each step joins groups that already agree, so a mirror serves as well as a rotation.
template <class T, class Op>
__device__ inline T reduce_row16(T x, Op op) {
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

// Of the sums of n numbers over `lanes` lanes each lane gets its share, in n / 2 + n / 4 + .. steps
// in place of n for every halving: lane t of them has numbers [t * n / lanes, (t + 1) * n / lanes).
template <int lanes, int n>
__device__ inline void share_sums(const float (&x)[n], int lane, float (&sums)[n / lanes]) {
  static_assert(lanes <= 16 && n % lanes == 0);
  if constexpr (lanes == 1) {
#pragma unroll
    for (int i = 0; i < n; ++i) sums[i] = x[i];
  } else {
    // Lanes whose bit `lanes / 2` is set keep the upper half of the numbers.
    constexpr int control = lanes == 16  ? dpp::kRowHalfSwap
                            : lanes == 8 ? dpp::kRowHalfMirror
                            : lanes == 4 ? dpp::kQuadSwap2
                                         : dpp::kQuadSwap1;
    const bool upper = lane & (lanes / 2);
    float half[n / 2];
#pragma unroll
    for (int i = 0; i < n / 2; ++i) {
      const float a = x[i], b = x[i + n / 2];
      half[i] = (upper ? b : a) + dpp::move<control>(upper ? a : b);
    }
    share_sums<lanes / 2>(half, lane, sums);
  }
}

// The sum over lanes that lie 16 (and 32) apart, in all of them.
template <int lanes>
__device__ inline float sum_rows(float x) {
  const auto bits = [](float f) { return __builtin_bit_cast(int, f); };
  const auto number = [](int i) { return __builtin_bit_cast(float, i); };
  if constexpr (lanes > 16)  // ds_swizzle, bit mode: lane ^ 16, within 32
    x += number(__builtin_amdgcn_ds_swizzle(bits(x), 0x401f));
  if constexpr (lanes > 32)
    x += number(__builtin_amdgcn_ds_bpermute((static_cast<int>(threadIdx.x) ^ 32) * 4, bits(x)));
  return x;
}

}  // namespace flashattn::gcn
