// Loads by the scalar unit, which neither wait for nor hold up the vector loads under way.
#pragma once

#include <cstdint>

namespace flashattn::gcn {

// Of memory that the kernel does not write, at an address that is the same in all lanes.
template <class T>
__device__ inline T load_scalar(const T* from) {
  using Constant = const __attribute__((address_space(4))) T*;
  return *(Constant)(reinterpret_cast<uint64_t>(from));
}

}  // namespace flashattn::gcn
