// What may change scores between QK^T and the softmax, in this order: softcap, ALiBi, bias or mask
// (Scores::modified). Scores come as products, a factor before softmax's, and leave in base 2.
#pragma once

#include "attention/base2.h"
#include "attention/block_range.h"
#include "attention/shape.h"
#include "core/fwd_args.h"
#include "gcn/bf16.h"
#include "gcn/math.h"
#include "gcn/wave.h"

namespace flashattn {

// Where a lane's scores lie: rows `first_row` + 4 i, keys `first_key` + 16 j; transposed, rows
// `first_row` + 16 j and keys `first_key` + 4 i.
struct ScorePlace {
  int first_row;
  int first_key;
};

template <int rows, int keys, bool transposed = false>
class ScoreChanger {
  using Block = float (&)[rows][keys];

 public:
  __device__ ScoreChanger(const FwdArgs& args, const Visible& visible, int batch, int head,
                          float factor)
      : args_(args), visible_(visible), batch_(batch), head_(head), factor_(factor) {}

  __device__ void operator()(Block s, const ScorePlace& place) const {
    const ScoreChanges& c = args_.scores;
    for_each(s, [&](float& x, int, int) { x *= factor_; });
    if (c.softcap != 0.0f) {
      const float inverse = 1.0f / c.softcap;
      for_each(s, [&](float& x, int, int) { x = c.softcap * tanh(x * inverse); });
    }
    add(s, place);
  }

  // The same, with the derivative of each score by its scaled product.
  __device__ void operator()(Block s, Block derivative, const ScorePlace& place) const {
    const float cap = args_.scores.softcap;
    for_each(s, [&](float& x, int, int) { x *= factor_; });
    const float inverse = cap == 0.0f ? 0.0f : 1.0f / cap;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < keys; ++j) {
        const float t = cap == 0.0f ? 0.0f : tanh(s[i][j] * inverse);
        derivative[i][j] = __builtin_fmaf(-t, t, 1.0f);
        if (cap != 0.0f) s[i][j] = cap * t;
      }
    add(s, place);
  }

 private:
  __device__ void add(Block s, const ScorePlace& place) const {
    const ScoreChanges& c = args_.scores;
    if (c.alibi_slopes != nullptr) add_alibi(s, place);
    switch (c.bias_type) {
      case BiasType::none:
        break;
      case BiasType::f16:
        add_bias<gcn::half>(s, place, [](gcn::half x) { return float{x}; });
        break;
      case BiasType::bf16:
        add_bias<uint16_t>(s, place, gcn::bf16_to_float);
        break;
      case BiasType::f32:
        add_bias<float>(s, place, [](float x) { return x; });
        break;
      case BiasType::mask:
        add_bias<uint8_t>(s, place, [](uint8_t x) { return x ? 0.0f : -__builtin_inff(); });
        break;
    }
    for_each(s, [&](float& x, int, int) { x *= kLog2e; });
  }

  template <class F>
  __device__ static void for_each(Block s, F f) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < keys; ++j) {
        if constexpr (transposed)
          f(s[i][j], j * kGroupLanes, i * kGroups);
        else
          f(s[i][j], i * kGroups, j * kGroupLanes);
      }
  }

  // 1 - 2 / (e^2x + 1): both ends of the exponential are harmless.
  __device__ static float tanh(float x) {
    return 1.0f - 2.0f * gcn::reciprocal(gcn::exp2(x * (2.0f * kLog2e)) + 1.0f);
  }

  __device__ void add_alibi(Block s, const ScorePlace& place) const {
    const ScoreChanges& c = args_.scores;
    const float slope = c.alibi_slopes[batch_ * c.alibi_batch_stride + head_];
    const int ahead = gcn::opaque(place.first_row + visible_.diagonal - place.first_key);
    for_each(s, [&](float& x, int down, int right) {
      const int distance = ahead + down - right;
      x -= slope * static_cast<float>(distance < 0 ? -distance : distance);
    });
  }

  // Rows and keys that do not exist take the bias of the last one; a mask hides them, or nobody
  // reads them.
  template <class T, class Convert>
  __device__ void add_bias(Block s, const ScorePlace& place, Convert convert) const {
    const ScoreChanges& c = args_.scores;
    const T* const head =
        static_cast<const T*>(c.bias) + batch_ * c.bias_batch_stride + head_ * c.bias_head_stride;
    const int row = gcn::opaque(place.first_row), key = gcn::opaque(place.first_key);
    for_each(s, [&](float& x, int down, int right) {
      const int r = within(row + down, visible_.seqlen_q),
                k = within(key + right, visible_.seqlen_k);
      x += convert(head[r * c.bias_row_stride + k * c.bias_key_stride]);
    });
  }

  __device__ static int within(int index, int count) { return index < count ? index : count - 1; }

  const FwdArgs& args_;
  const Visible& visible_;
  int batch_, head_;
  float factor_;
};

}  // namespace flashattn
