// The arguments of the kernels that work on a KV cache, as the host fills them and the card reads
// them.
#pragma once

#include <cstdint>

#include "core/fwd_args.h"

namespace flashattn {

// What a cache holds: numbers like those of Q, or bytes that a scale belongs to: integers, or
// floating-point numbers with 4 or 5 bits of exponent (e4m3fn and e5m2 of the OCP).
enum class KvFormat : int32_t { plain, int8, e4m3, e5m2 };

// Strides in elements; all 0: one scale for the whole cache, which is given and never written.
// Null: the format has no scales.
struct KvScales {
  float* data;  // [items, keys of an item, heads_kv]
  int64_t item_stride;
  int64_t row_stride;
  int64_t head_stride;

  constexpr bool one_for_all() const { return (item_stride | row_stride | head_stride) == 0; }
};

// Dense: item i of the cache holds the keys of one sequence. Paged: items are pages of page_size
// keys, and row b of the block table lists those of sequence b. Indices that lie on the device are
// not trusted: what they point to outside the cache is neither read nor written.
struct KvCache {
  TensorView k;  // [items, keys of an item, heads_kv, head_dim]
  TensorView v;  // [items, keys of an item, heads_kv, head_dim_v]
  KvScales k_scale;
  KvScales v_scale;
  const int32_t* block_table;  // or null (dense): [batch, pages of a sequence]
  const int32_t* batch_idx;    // or null: which item holds sequence b (dense only)
  const int32_t* seqlens;      // or null (full): [batch], keys in the cache before this call
  const int32_t* leftpad;      // or null: [batch], keys before it do not count (dense only)
  int64_t table_stride;
  int32_t items;
  int32_t page_size;
  uint32_t page_reciprocal;  // ceil(2^31 / (page_size / 16))
  int32_t capacity;          // keys of a sequence at most
};

inline constexpr int kMaxSplits = 128;  // as flash-attn

// The slots in which the splits of a sequence leave their partial results, one each.
struct SlotRange {
  int32_t first;
  int32_t count;  // 1: the sequence has one split, which left no partial result
};

// What splits of the keys leave behind, if a sequence has more than one: the normalised output and
// its log-sum-exp in base 2 of each row. Where all sequences have as many splits, those are the
// slots, and rows are numbered as the LSE's elements. Else a split of a sequence has a slot of its
// own, with rows (query head, token).
struct Partials {
  float* o;                // [slots, rows, head_dim_v]
  float* lse;              // [slots, rows]
  SlotRange* of_sequence;  // [batch], as decode found it; or null: all have the same number
  int64_t rows;
};

struct DecodeArgs {
  TensorView q;  // [batch, seqlen_q, heads_q, head_dim], or without batch if cu_seqlens_q is given
  TensorView o;
  KvCache cache;
  Partials partials;
  float* lse;                   // [batch, heads_q, seqlen_q], or [heads_q, all rows]; natural log
  const float* sinks;           // or null: [heads_q]
  const float* alibi_slopes;    // or null: [heads_q], or [batch, heads_q]
  const int32_t* cu_seqlens_q;  // or null: [batch + 1]
  int64_t lse_batch_stride;
  int64_t lse_head_stride;
  int64_t alibi_batch_stride;
  int32_t batch;
  int32_t seqlen_q;    // cu_seqlens_q: the longest that the grid is for
  int32_t seqlen_new;  // keys that were appended after seqlens
  int32_t heads_q;
  int32_t heads_kv;
  int32_t head_dim;
  int32_t head_dim_v;
  int32_t window_left;  // as in FwdArgs, aligned at the bottom right
  int32_t window_right;
  int32_t tiles;    // of the packed rows (token, query head) of a key head
  int32_t splits;   // of the keys of a sequence; of all on average if at_once is given
  int32_t at_once;  // or 0: splits of a tile that the card runs at once, to balance sequences by
  float softmax_scale;
  float softcap;  // 0: none
};

// Joins the partial results of a decode launch.
struct JoinArgs {
  TensorView o;
  Partials partials;
  float* lse;
  const float* sinks;
  const int32_t* cu_seqlens_q;
  int64_t lse_batch_stride;
  int64_t lse_head_stride;
  int32_t batch;  // packed sequences with as many splits each: 1, of all rows
  int32_t heads_q;
  int32_t seqlen_q;
  int32_t splits;
  int32_t head_dim_v;
  int32_t waves_of_row;  // that take turns through its splits: 1, or all of a workgroup
};

// Writes new keys and values to the cache, and turns them and q by their positions.
struct AppendArgs {
  TensorView k;  // [batch, seqlen_new, heads_kv, head_dim]
  TensorView v;
  TensorView q;      // [batch, seqlen_q, heads_q, head_dim]; no data: q is not turned
  TensorView q_out;  // likewise
  KvCache cache;
  const void* cos;  // or null: [positions, rotary_dim / 2], dtype of q
  const void* sin;
  int32_t batch;
  int32_t seqlen_new;
  int32_t seqlen_q;
  int32_t heads_kv;
  int32_t heads_q;
  int32_t head_dim;
  int32_t head_dim_v;
  int32_t rotary_dim;
  int32_t positions;
  int32_t interleaved;        // pairs are (0, 1), (2, 3), ..; else (i, i + rotary_dim / 2)
  int32_t q_at_one_position;  // all rows of q at that of the first
};

}  // namespace flashattn
