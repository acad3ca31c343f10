// Read-modify-write functions shared by LDS and global atomics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace fasim {

struct AtomicAdd {
  template <class T>
  T operator()(T old, T data) const {
    return old + data;
  }
};
struct AtomicSub {
  template <class T>
  T operator()(T old, T data) const {
    return old - data;
  }
};
struct AtomicReverseSub {
  template <class T>
  T operator()(T old, T data) const {
    return data - old;
  }
};
struct AtomicAnd {
  template <class T>
  T operator()(T old, T data) const {
    return old & data;
  }
};
struct AtomicOr {
  template <class T>
  T operator()(T old, T data) const {
    return old | data;
  }
};
struct AtomicXor {
  template <class T>
  T operator()(T old, T data) const {
    return old ^ data;
  }
};
struct AtomicSwap {
  template <class T>
  T operator()(T, T data) const {
    return data;
  }
};
struct AtomicUnsignedMin {
  template <class T>
  T operator()(T old, T data) const {
    return std::min(old, data);
  }
};
struct AtomicUnsignedMax {
  template <class T>
  T operator()(T old, T data) const {
    return std::max(old, data);
  }
};
struct AtomicSignedMin {
  template <class T>
  T operator()(T old, T data) const {
    using S = std::make_signed_t<T>;
    return static_cast<T>(std::min(static_cast<S>(old), static_cast<S>(data)));
  }
};
struct AtomicSignedMax {
  template <class T>
  T operator()(T old, T data) const {
    using S = std::make_signed_t<T>;
    return static_cast<T>(std::max(static_cast<S>(old), static_cast<S>(data)));
  }
};
// Wrap to 0 above `data`.
struct AtomicIncrement {
  template <class T>
  T operator()(T old, T data) const {
    return old >= data ? 0 : old + 1;
  }
};
// Wrap to `data` at 0 or from above it.
struct AtomicDecrement {
  template <class T>
  T operator()(T old, T data) const {
    return old == 0 || old > data ? data : old - 1;
  }
};
template <class Float, class Fn>
struct AtomicFloat {
  template <class T>
  T operator()(T old, T data) const {
    return __builtin_bit_cast(
        T, Fn{}(__builtin_bit_cast(Float, old), __builtin_bit_cast(Float, data)));
  }
};
struct FloatMin {
  template <class F>
  F operator()(F a, F b) const {
    return b < a ? b : a;
  }
};
struct FloatMax {
  template <class F>
  F operator()(F a, F b) const {
    return b > a ? b : a;
  }
};

}  // namespace fasim
