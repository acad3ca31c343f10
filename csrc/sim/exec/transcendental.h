#pragma once

#include "exec/float_bits.h"

namespace fasim {

// 2^x for f32 and f16 operands; 0 and infinity appear on narrowing.
f64x16 exp2_wide(f32x16 x);
f64x16 log2_wide(f64x16 x);
// sin(2 pi x)
f64x16 sine_of_turns(f64x16 turns);

}  // namespace fasim
