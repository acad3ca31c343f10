// Exponentials and logarithms are in base 2, as the card computes them.
#pragma once

namespace flashattn {

inline constexpr float kLog2e = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.693147180559945309417f;

}  // namespace flashattn
