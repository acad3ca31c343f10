// Single instructions of the vector ALU, named after what they compute.
#pragma once

#include "gcn/vec.h"

namespace flashattn::gcn {

// v_dot2_f32_f16: a.x * b.x + a.y * b.y + acc with fp32 accumulation, at twice the rate of fp32
// FMA. gfx900 is the one target without it.
__device__ inline float dot2(half2 a, half2 b, float acc) {
#if defined(__gfx900__)
  return __builtin_fmaf(static_cast<float>(a.y), static_cast<float>(b.y),
                        __builtin_fmaf(static_cast<float>(a.x), static_cast<float>(b.x), acc));
#else
  return __builtin_amdgcn_fdot2(a, b, acc, /*clamp=*/false);
#endif
}

// v_exp_f32, 1 ULP, denormal results flushed. exp2f() would add four instructions to keep them,
// for probabilities below 2^-126 that vanish beside the 1 of the row's maximum. LLVM 16 has no
// builtin for it, and lowers exp2f() to the one instruction.
__device__ inline float exp2(float x) {
#if __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);
#else
  return __builtin_exp2f(x);
#endif
}

// The nearest number that is finite; NaN stays.
inline constexpr float kLargest = 3.402823466e38f;
__device__ inline float finite(float x) {
  return x > kLargest ? kLargest : x < -kLargest ? -kLargest : x;
}

// v_log_f32, with denormals as exp2.
__device__ inline float log2(float x) {
#if __has_builtin(__builtin_amdgcn_logf)
  return __builtin_amdgcn_logf(x);
#else
  return __builtin_log2f(x);
#endif
}

// One instruction each. __builtin_fmaxf quiets signalling NaNs first, with an instruction an
// operand.
__device__ inline float max2(float a, float b) {
  float x;
  asm("v_max_f32 %0, %1, %2" : "=v"(x) : "v"(a), "v"(b));
  return x;
}
__device__ inline float max3(float a, float b, float c) {
  float x;
  asm("v_max3_f32 %0, %1, %2, %3" : "=v"(x) : "v"(a), "v"(b), "v"(c));
  return x;
}
// Of magnitudes.
__device__ inline float max2_abs(float a, float b) {
  float x;
  asm("v_max_f32 %0, |%1|, |%2|" : "=v"(x) : "v"(a), "v"(b));
  return x;
}
__device__ inline float max3_abs(float a, float b, float c) {
  float x;
  asm("v_max3_f32 %0, |%1|, |%2|, |%3|" : "=v"(x) : "v"(a), "v"(b), "v"(c));
  return x;
}
// In place, so that a branch around it needs no copies.
__device__ inline void scale_by(float& x, float factor) {
  asm("v_mul_f32 %0, %0, %1" : "+v"(x) : "v"(factor));
}

__device__ inline float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
// x * 2^exponent. LLVM 16 makes a library's call of __builtin_ldexpf.
__device__ inline float ldexp(float x, int exponent) {
  return __builtin_amdgcn_ldexpf(x, exponent);
}
__device__ inline float square_root(float x) { return __builtin_amdgcn_sqrtf(x); }

// A product in which 0 times anything, also inf or NaN, is 0.
__device__ inline float multiply_zero_wins(float a, float b) {
  float x;
  asm("v_mul_legacy_f32 %0, %1, %2" : "=v"(x) : "v"(a), "v"(b));
  return x;
}

// Adds it, in place.
__device__ inline void add_product_zero_wins(float& sum, float a, float b) {
  const float product = multiply_zero_wins(a, b);
  asm("v_add_f32 %0, %0, %1" : "+v"(sum) : "v"(product));
}

// Rounds to nearest even. v_cvt_pkrtz_f16_f32 would be one instruction in place of three, but it
// rounds every probability down, which biases O by up to 2^-11 of its value.
__device__ inline half2 to_half2(float x, float y) {
  return half2{static_cast<half>(x), static_cast<half>(y)};
}

}  // namespace flashattn::gcn
