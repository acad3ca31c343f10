// Attention of the same queries over two disjoint sets of keys becomes that over both: 16 bytes of
// a row a lane, which weighs them by attention/merge.h for itself.
#pragma once

#include <hip/hip_runtime.h>

#include "attention/batch_of_grid.h"
#include "attention/merge.h"
#include "attention/number.h"
#include "core/merge_args.h"

namespace flashattn {

// flash-attn's older kernels give +inf for a row that sees no key, and vLLM takes it so.
__device__ inline float lse_of_keys(float lse) {
  return lse == __builtin_inff() ? -__builtin_inff() : lse;
}

// Joined in natural logarithms, relative to the larger one: in base 2 large ones would lose digits.
__device__ inline Joined join_natural(float a, float b) {
  const float most = a > b ? a : b;
  const float shift = most == -__builtin_inff() ? 0.0f : most;
  Joined joined = Joined::of((a - shift) * kLog2e, (b - shift) * kLog2e);
  joined.lse = shift + joined.lse * kLn2;
  return joined;
}

template <Element E>
class MergeChunk {
  static constexpr int kCount = kMergeChunkBytes / static_cast<int>(sizeof(Number<E>));
  using Vec = Number<E> __attribute__((ext_vector_type(kCount), aligned(4)));

 public:
  __device__ MergeChunk(const MergeArgs& args, int batch, uint32_t index)
      : args_(args), batch_(batch) {
    const auto chunks = static_cast<uint32_t>(args.chunks),
               heads = static_cast<uint32_t>(args.heads);
    column_ = static_cast<int>(index % chunks) * kCount;
    head_ = static_cast<int>(index / chunks % heads);
    row_ = static_cast<int>(index / chunks / heads);
  }

  __device__ void run() const {
    const Joined joined =
        join_natural(lse_of_keys(lse(args_.lse_a)), lse_of_keys(lse(args_.lse_b)));
    const Vec a = load(args_.a), b = load(args_.b);
    Vec out;
#pragma unroll
    for (int i = 0; i < kCount; ++i) out[i] = merged(joined, a[i], b[i]);
    store(out);
    if (column_ == 0) lse(args_.lse) = joined.lse;
  }

 private:
  // A side that weighs nothing may hold anything, and leaves the other as it is.
  __device__ static Number<E> merged(const Joined& joined, Number<E> a, Number<E> b) {
    if (joined.weight_b == 0.0f) return joined.weight_a == 0.0f ? narrow<E>(0.0f) : a;
    if (joined.weight_a == 0.0f) return b;
    return narrow<E>(joined.weight_a * widen<E>(a) + joined.weight_b * widen<E>(b));
  }

  __device__ float& lse(const LseView& x) const {
    return x.data[batch_ * x.batch_stride + row_ * x.row_stride + head_ * x.head_stride];
  }
  __device__ Number<E>* at(const TensorView& x) const {
    return static_cast<Number<E>*>(x.data) + batch_ * x.batch_stride + row_ * x.row_stride +
           head_ * x.head_stride + column_;
  }
  __device__ bool exists(int i) const { return column_ + i < args_.columns; }

  __device__ Vec load(const TensorView& x) const {
    const Number<E>* const from = at(x);
    if (args_.whole) return *reinterpret_cast<const Vec*>(from);
    Vec result{};
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (exists(i)) result[i] = from[i];
    return result;
  }
  __device__ void store(Vec x) const {
    Number<E>* const to = at(args_.o);
    if (args_.whole) {
      *reinterpret_cast<Vec*>(to) = x;
      return;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (exists(i)) to[i] = x[i];
  }

  const MergeArgs& args_;
  int batch_, row_, head_, column_;
};

template <Element E>
__device__ inline void merge_states(const MergeArgs& args) {
  const int batch = batch_of_grid();
  const uint32_t index = blockIdx.x * kMergeThreads + threadIdx.x;
  const uint32_t count = static_cast<uint32_t>(args.seqlen) * args.heads * args.chunks;
  if (batch < args.batch && index < count) MergeChunk<E>(args, batch, index).run();
}

}  // namespace flashattn
