// Global memory -> registers -> LDS, for the resident Q tile and the streamed K and V tiles.
// Rows past the end of the sequence and columns past the head's become zeros: what an earlier
// kernel left in LDS, or lies behind the tensor, never meets a multiplication.
#pragma once

#include "attention/element.h"
#include "attention/lds_storage.h"
#include "gcn/buffer_io.h"
#include "gcn/global_io.h"
#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn {

// 8 halves, 16 bytes: what one lane moves at once.
inline constexpr int kChunk = 8;

// Rows of one head, bounded by its sequence; stride and columns in halves.
struct Rows {
  const gcn::half* base;
  int64_t row_stride;
  int count;
  int columns;
};

// How the threads of a workgroup share the chunks of `rows` rows of `columns` halves: a row takes
// kLanes threads, thread t moves chunk t % kLanes of rows t / kLanes + i * kRowsAtOnce.
template <Tile T, int rows, int columns>
struct Share {
  static constexpr int kRowChunks = columns / kChunk;
  static constexpr int kLanes = kRowChunks <= 2    ? 2
                                : kRowChunks <= 4  ? 4
                                : kRowChunks <= 8  ? 8
                                : kRowChunks <= 16 ? 16
                                : kRowChunks <= 32 ? 32
                                : kRowChunks <= 64 ? 64
                                                   : 128;
  static constexpr int kRowsAtOnce = T.threads() / kLanes < rows ? T.threads() / kLanes : rows;
  static constexpr int kSteps = rows / kRowsAtOnce;
  static constexpr bool kAllBusy = kLanes == kRowChunks && kRowsAtOnce * kLanes == T.threads();
  static_assert(kLanes >= kRowChunks && rows % kRowsAtOnce == 0);

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int col() { return static_cast<int>(threadIdx.x) % kLanes * kChunk; }
  __device__ static bool busy() { return kAllBusy || (col() < columns && row() < kRowsAtOnce); }
  // With a chunk of columns [first, first + count).
  template <int first, int count>
  __device__ static bool busy_in() {
    return busy() && (count == columns || (col() >= first && col() < first + count));
  }
};

// The reads of this thread from rows [first, first + n) of a head; n is 0 for zeros alone.
template <Access access>
class TileReader;

template <>
class TileReader<Access::chunks> {
 public:
  __device__ TileReader(const Rows& rows, int first, int n, int row, int col)
      : row_bytes_(static_cast<uint32_t>(rows.row_stride) * sizeof(gcn::half)),
        resource_(resource(rows, first, n)),
        offset_(col < rows.columns ? row * row_bytes_ + col * sizeof(gcn::half) : kOutside) {}

  // The chunk `down` rows below the thread's own; `down` is the same for all threads.
  __device__ gcn::half8 read(int down) const {
    return gcn::load8(resource_, offset_, down * row_bytes_);
  }

 private:
  // The host sees to it that a tile ends below it.
  static constexpr uint32_t kOutside = 0x80000000u;

  __device__ gcn::BufferResource resource(const Rows& rows, int first, int n) const {
    const int left = rows.count - first, held = left < n ? left : n;
    const uint32_t bytes =
        held > 0 ? (held - 1) * row_bytes_ + rows.columns * sizeof(gcn::half) : 0;
    // Of a stride in halves, fp32's times 2, the upper half is a v_alignbit_b32: in a VGPR, too.
    return gcn::buffer(reinterpret_cast<const char*>(rows.base) +
                           uint64_t{static_cast<uint32_t>(first)} * row_bytes_,
                       bytes);
  }

  uint32_t row_bytes_;
  gcn::BufferResource resource_;
  uint32_t offset_;
};

template <>
class TileReader<Access::elements> {
 public:
  __device__ TileReader(const Rows& rows, int first, int n, int row, int col)
      : rows_(rows), row_(first + row), col_(col), end_(n == 0 ? 0 : rows.count) {}

  __device__ gcn::half8 read(int down) const {
    const int row = row_ + down;
    const int columns = row < end_ ? rows_.columns - col_ : 0;
    return gcn::load_elements(rows_.base + row * rows_.row_stride + col_, columns);
  }

 private:
  const Rows& rows_;
  int row_, col_, end_;
};

// bf16: a row's chunk, times the power of two that its neighbours agree on. All lanes take part,
// also those that have no chunk: one that is off would cut others off.
template <class S, int rows, int pitch>
__device__ inline void store_normalised(gcn::half (&to)[rows][pitch], float (&scale)[rows], int row,
                                        gcn::half8 chunk) {
  const uint32_t exponent = gcn::max_over<S::kLanes>(gcn::largest_exponent(chunk));
  if (!S::busy()) return;
  lds_write(&to[row][S::col()], gcn::bf16_to_half(chunk, RowScale::factor(exponent)));
  if (S::col() == 0) scale[row] = RowScale::inverse(exponent);
}

// A tile of `rows` rows of `columns` halves on its way: load() starts the reads, the registers
// are stored once LDS has room.
template <Tile T, int rows, int columns>
class InFlight {
 public:
  using S = Share<T, rows, columns>;

  __device__ void load(const Rows& from, int first, bool exists) {
    const TileReader<T.access> reader(from, first, exists ? rows : 0, S::row(), S::col());
    // Not a loop to unroll: of 16 steps by elements the compiler would not.
    static_for<S::kSteps>([&](auto i) { chunk_[i] = reader.read(i * S::kRowsAtOnce); });
  }

  // Columns [first, first + count) of them.
  template <int first = 0, int count = columns, class To, int pitch>
  __device__ void store(To (&to)[rows][pitch]) const {
    if (!S::template busy_in<first, count>()) return;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) {
      auto* const row = reinterpret_cast<gcn::half*>(&to[S::row() + i * S::kRowsAtOnce]);
      lds_write(row + S::col() - first, chunk_[i]);
    }
  }

  // bf16: each row normalised, and the inverse of its factor beside it.
  template <int pitch>
  __device__ void store(gcn::half (&to)[rows][pitch], float (&scale)[rows]) const {
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i)
      store_normalised<S>(to, scale, S::row() + i * S::kRowsAtOnce, chunk_[i]);
  }

 private:
  gcn::half8 chunk_[S::kSteps];
};

// The same for V in pairs: a thread moves a row and its partner 16 keys on, and they meet in LDS.
// (The backward wants its tiles both so and as they are.)
template <Tile T>
class VPairsInFlight {
  using S = Share<T, T.block_n / 2, T.head_dim_v>;  // rows of pairs
  static_assert(S::kRowsAtOnce % kGroupLanes == 0 || kGroupLanes % S::kRowsAtOnce == 0,
                "the first key of a pair is then a sum of the thread's and the step's");

 public:
  __device__ void load(const Rows& from, int first, bool exists) {
    const TileReader<T.access> reader(from, first, exists ? T.block_n : 0,
                                      first_key_of_pair(S::row()), S::col());
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) {
      const int down = first_key_of_pair(i * S::kRowsAtOnce);
      row_[i][0] = reader.read(down);
      row_[i][1] = reader.read(down + kGroupLanes);
    }
  }

  // bf16: of the elements that this thread holds.
  __device__ uint32_t largest_exponent() const {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) {
      const uint32_t a = gcn::largest_exponent(row_[i][0]), b = gcn::largest_exponent(row_[i][1]);
      most = most > a ? most : a;
      most = most > b ? most : b;
    }
    return most;
  }

  __device__ void convert_from_bf16(float factor) {
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i)
#pragma unroll
      for (int of = 0; of < 2; ++of) row_[i][of] = gcn::bf16_to_half(row_[i][of], factor);
  }

  // bf16: each row normalised, in the registers; the inverses of the factors to LDS.
  __device__ void normalise(float (&scale)[T.block_n]) {
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i)
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        uint32_t exponent = gcn::max_over<S::kLanes>(gcn::largest_exponent(row_[i][of]));
        // Beside inf or NaN the finite ones keep their digits.
        if (gcn::any_lane(exponent == gcn::kNonFiniteExponent))
          exponent = gcn::max_over<S::kLanes>(gcn::largest_finite_exponent(row_[i][of]));
        row_[i][of] = gcn::bf16_to_half(row_[i][of], RowScale::factor(exponent));
        if (S::busy() && S::col() == 0) scale[key(i, of)] = RowScale::inverse(exponent);
        gcn::pin_schedule();  // or all conversions are under way at once, in registers
      }
  }

  // Columns [first, first + count): as they are, a key a row,
  template <int first = 0, int count = T.head_dim_v, int pitch>
  __device__ void store(gcn::half (&to)[T.block_n][pitch]) const {
    if (!S::template busy_in<first, count>()) return;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i)
#pragma unroll
      for (int of = 0; of < 2; ++of) lds_write(&to[key(i, of)][S::col() - first], row_[i][of]);
  }

  // or in pairs.
  template <int first = 0, int count = T.head_dim_v, int pitch>
  __device__ void store(uint32_t (&to)[T.block_n / 2][pitch]) const {
    if (!S::template busy_in<first, count>()) return;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) {
      uint32_t* dst = &to[S::row() + i * S::kRowsAtOnce][S::col() - first];
      lds_write(dst, interleave(row_[i], 0));
      lds_write(dst + 4, interleave(row_[i], 4));
    }
  }

 private:
  __device__ static int key(int step, int of) {
    return first_key_of_pair(S::row()) + first_key_of_pair(step * S::kRowsAtOnce) +
           of * kGroupLanes;
  }

  // Two rows of V side by side become pairs along the keys, four columns at a time.
  __device__ static gcn::pairs4 interleave(const gcn::half8 (&rows)[2], int col) {
    gcn::pairs4 x;
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = gcn::as_bits({rows[0][col + i], rows[1][col + i]});
    return x;
  }

  gcn::half8 row_[S::kSteps][2];
};

template <Tile T, Element E>
using VInFlight =
    std::conditional_t<per_word(E) == 1, InFlight<T, T.block_n, T.head_dim_v * halves_of(E)>,
                       VPairsInFlight<T>>;

// Of a factor 16-bit numbers take the sign alone; it is the one in fp16 as in bf16.
template <Element E>
__device__ inline gcn::half8 multiplied(gcn::half8 x, float factor) {
  if constexpr (E == Element::f32)
    return __builtin_bit_cast(gcn::half8, __builtin_bit_cast(gcn::float4, x) * factor);
  else
    return factor < 0.0f ? -x : x;
}

template <Tile T, Element E>
__device__ inline void stage_q(LdsStorage<T, E>& lds, const Rows& q, int first_row, float factor) {
  using S = Share<T, T.block_m, T.head_dim * halves_of(E)>;
  const TileReader<T.access> reader(q, first_row, T.block_m, S::row(), S::col());
#pragma unroll 4
  for (int i = 0; i < S::kSteps; ++i) {
    const int row = S::row() + i * S::kRowsAtOnce;
    const gcn::half8 x = multiplied<E>(reader.read(i * S::kRowsAtOnce), factor);
    if constexpr (E == Element::bf16)
      store_normalised<S>(lds.q, lds.scales.q_scale, row, x);
    else if (S::busy())
      lds_write(&lds.q[row][S::col()], x);
  }
}

}  // namespace flashattn
