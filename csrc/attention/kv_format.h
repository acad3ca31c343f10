// What a lane loads of a key in each format of the cache, and how it becomes 8 numbers that the
// products take.
#pragma once

#include "core/decode_args.h"
#include "gcn/buffer_narrow.h"
#include "gcn/int8.h"

namespace flashattn {

template <KvFormat F>
struct KvChunk;

template <>
struct KvChunk<KvFormat::plain> {
  using Type = gcn::half8;
  static constexpr int kElementBytes = 2;

  __device__ static Type load(const gcn::BufferResource& rows, int offset, int uniform_offset) {
    return gcn::load8(rows, offset, uniform_offset);
  }
  __device__ static gcn::half8 widen(Type x) { return x; }
};

template <>
struct KvChunk<KvFormat::int8> {
  using Type = gcn::pairs2;
  static constexpr int kElementBytes = 1;

  __device__ static Type load(const gcn::BufferResource& rows, int offset, int uniform_offset) {
    return gcn::load_bytes8(rows, offset, uniform_offset);
  }
  __device__ static gcn::half8 widen(Type x) { return gcn::int8_to_half(x); }
};

}  // namespace flashattn
