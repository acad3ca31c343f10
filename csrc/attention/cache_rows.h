// Where the keys of one sequence lie in a KV cache, dense or paged. The only place that turns key
// numbers into addresses; no index read from memory makes one outside the cache.
#pragma once

#include "attention/kv_format.h"
#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/grid.h"
#include "gcn/buffer_narrow.h"
#include "gcn/global_io.h"
#include "gcn/scalar_io.h"
#include "gcn/vec.h"
#include "gcn/wave.h"

namespace flashattn {

// Up to kPageMultiple keys from one on, in one item of the cache. Unsigned: a product of 32 bits by
// 32 is two scalar instructions then, of signed numbers seven.
struct CachePlace {
  uint32_t item;
  uint32_t row;   // of the item
  int held;       // keys that exist; 0 or less: none
  uint32_t some;  // all bits, or none where no key exists

  // From the first key that exists to `last` bytes of the last one.
  __device__ uint32_t bytes(uint32_t row_bytes, uint32_t last) const {
    return (held * row_bytes - row_bytes + last) & some;
  }
};

class CacheRows {
 public:
  // Keys [0, count) of sequence `batch` begin after its left padding.
  __device__ CacheRows(const KvCache& cache, int batch)
      : cache_(cache),
        table_(cache.block_table == nullptr ? nullptr
                                            : cache.block_table + batch * cache.table_stride),
        own_item_(cache.batch_idx == nullptr ? batch : gcn::load_scalar(cache.batch_idx + batch)) {
    const int pad = cache.leftpad == nullptr ? 0 : gcn::load_scalar(cache.leftpad + batch);
    first_ = pad < 0 ? 0 : pad;
  }

  // Keys that count, `added` of them after those that the cache held.
  __device__ int count(int batch, int added) const {
    const int held =
        cache_.seqlens == nullptr ? cache_.capacity : gcn::load_scalar(cache_.seqlens + batch);
    return count(cache_, held, first_, added);
  }
  __device__ static int count(const KvCache& cache, int held, int pad, int added) {
    const int end = held < cache.capacity - added ? held + added : cache.capacity;
    const int first = pad < 0 ? 0 : pad;
    return end > first ? end - first : 0;
  }

  // The item of a key: for a later place(). Entries of keys from `end` on are not read.
  __device__ int item(int key, int end) const {
    if (table_ == nullptr) return own_item_;
    return key < end ? gcn::load_scalar(table_ + page(key)) : 0;
  }

  __device__ CachePlace place(int key, int end, int item) const {
    const bool exists = static_cast<uint32_t>(item) < static_cast<uint32_t>(cache_.items);
    const int left = exists ? end - key : 0;
    const int row = table_ == nullptr ? first_ + key : key - page(key) * cache_.page_size;
    return {.item = static_cast<uint32_t>(item),
            .row = static_cast<uint32_t>(row),
            .held = left < kPageMultiple ? left : kPageMultiple,
            .some = left > 0 ? ~0u : 0u};
  }

 private:
  // key / page_size: exact while keys times page_size stay below 2^40, which the host checks.
  __device__ int page(int key) const {
    const uint64_t twice_of_16 = static_cast<uint32_t>(key) / (kPageMultiple / 2) & ~1u;
    return static_cast<int>(twice_of_16 * cache_.page_reciprocal >> 32);
  }

  const KvCache& cache_;
  const int32_t* table_;
  int own_item_;
  int first_;
};

inline constexpr uint32_t kOutside = 0x80000000u;  // offset of lanes that load zeros

// A lane's chunks of K, or of V: the same columns of some keys of a step. A chunk of more than 16
// bytes is pieces of 16, which lie apart: neighbouring lanes load neighbouring pieces.
template <DecodeTile T, KvFormat F, ChunkLayout L>
class ChunkReader {
  static constexpr int kBytes = KvNumbers<F>::kElementBytes;

 public:
  using Chunk = KvChunk<F, L.columns>;

  // The base in SGPRs: it follows from a division, and would keep 6 VGPRs of K and V through the
  // loop.
  __device__ ChunkReader(const TensorView& x, int head, int columns, int chunk, int group)
      : base_(gcn::uniform(static_cast<const char*>(x.data) + head * x.head_stride * kBytes)),
        item_bytes_(static_cast<uint64_t>(x.batch_stride) * kBytes),
        row_bytes_(static_cast<uint32_t>(x.row_stride) * kBytes),
        columns_(columns),
        column_(chunk * kPieceColumns),
        group_(group) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
      offset_[i] = column_of(i) < columns ? group * row_bytes_ + column_of(i) * kBytes : kOutside;
  }

  __device__ void read(const CachePlace& place, Chunk (&x)[L.loads]) const {
    const char* const first = base_ + place.item * item_bytes_ + uint64_t{place.row} * row_bytes_;
#pragma unroll
    for (int u = 0; u < L.loads; ++u) {
      Pieces pieces;
#pragma unroll
      for (int i = 0; i < kPieces; ++i) pieces.piece[i] = read_piece(place, first, u, i);
      x[u] = __builtin_bit_cast(Chunk, pieces);
    }
  }

 private:
  static constexpr int kPieces = ceil_div<int>(sizeof(Chunk), 16);
  static constexpr int kPieceColumns = L.columns / kPieces;
  using Piece = KvChunk<F, kPieceColumns>;
  struct Pieces {
    Piece piece[kPieces];
  };

  __device__ int column_of(int piece) const { return column_ + piece * L.lanes * kPieceColumns; }

  __device__ Piece read_piece(const CachePlace& place, const char* first, int load, int i) const {
    if constexpr (T.access == Access::chunks) {
      const gcn::BufferResource rows =
          gcn::buffer(first, place.bytes(row_bytes_, columns_ * kBytes));
      return gcn::load_words<Piece>(rows, offset_[i], load * L.groups * row_bytes_);
    } else {
      static_assert(F == KvFormat::plain);
      const int key = load * L.groups + group_, column = column_of(i);
      const auto* const row = reinterpret_cast<const gcn::half*>(first + key * row_bytes_);
      return __builtin_bit_cast(Piece, gcn::load_elements<kPieceColumns>(
                                           row + column, key < place.held ? columns_ - column : 0));
    }
  }

  const char* base_;
  uint64_t item_bytes_;
  uint32_t row_bytes_;
  int columns_, column_, group_;
  uint32_t offset_[kPieces];
};

// The columns of K behind those of ChunkReader: a pair of each key of a step for lanes below
// rope / 2, zeros for the others.
template <DecodeTile T>
class RopeReader {
 public:
  __device__ RopeReader(const TensorView& k, int head, int lane)
      : base_(static_cast<const gcn::half*>(k.data) + head * k.head_stride + T.head_dim),
        item_stride_(k.batch_stride),
        row_stride_(k.row_stride),
        offset_(lane < T.rope / 2 ? lane * sizeof(gcn::half2) : kOutside) {}

  __device__ void read(const CachePlace& place, gcn::half2 (&x)[T.keys().loads]) const {
    const auto row_bytes = static_cast<uint32_t>(row_stride_ * sizeof(gcn::half));
    const gcn::BufferResource rows =
        gcn::buffer(base_ + place.item * item_stride_ + place.row * row_stride_,
                    place.bytes(row_bytes, T.rope * sizeof(gcn::half)));
#pragma unroll
    for (int u = 0; u < T.keys().loads; ++u)
      x[u] = __builtin_bit_cast(gcn::half2, gcn::load_float(rows, offset_, u * row_bytes));
  }

 private:
  const gcn::half* base_;
  int64_t item_stride_, row_stride_;
  uint32_t offset_;
};

// Scales of some keys of a step; 0 for those that do not exist.
class ScaleReader {
 public:
  __device__ ScaleReader(const KvScales& scales, int head)
      : base_(reinterpret_cast<const char*>(scales.data + head * scales.head_stride)),
        item_bytes_(static_cast<uint64_t>(scales.item_stride) * sizeof(float)),
        row_bytes_(static_cast<uint32_t>(scales.row_stride) * sizeof(float)) {}

  // Of keys first, first + apart, ..
  template <int n>
  __device__ void read(const CachePlace& place, int first, int apart, float (&x)[n]) const {
    const char* const from = base_ + place.item * item_bytes_ + uint64_t{place.row} * row_bytes_;
    const gcn::BufferResource rows = gcn::buffer(from, place.bytes(row_bytes_, sizeof(float)));
#pragma unroll
    for (int i = 0; i < n; ++i)
      x[i] = gcn::load_float(rows, first * row_bytes_, i * apart * row_bytes_);
  }

 private:
  const char* base_;
  uint64_t item_bytes_;
  uint32_t row_bytes_;
};

}  // namespace flashattn
