// Order of integer lanes.
#pragma once

#include "exec/lanes.h"

namespace fasim {

template <class V>
inline V smaller(V a, V b) {
  return __builtin_elementwise_min(a, b);
}
template <class V>
inline V larger(V a, V b) {
  return __builtin_elementwise_max(a, b);
}
template <class V>
inline V middle(V a, V b, V c) {
  return larger(smaller(a, b), smaller(larger(a, b), c));
}

}  // namespace fasim
