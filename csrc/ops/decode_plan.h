// How a decode call is spread over the card: kernel, tiles of rows, splits of keys. Follows from
// shapes and the device alone; the lengths themselves stay on the device.
#pragma once

#include <cstdint>

#include "core/decode_args.h"
#include "core/kernel_table.h"

namespace flashattn {

struct DecodeProblem {
  int64_t batch;
  int64_t heads_kv;
  int64_t rows;      // query tokens of a sequence, times query heads of a key head
  int64_t keys;      // that a row can see at most
  bool own_lengths;  // sequences have lengths of their own, which the card alone knows
  int64_t columns;   // head_dim or head_dim_v, the larger; without `rope`
  int64_t rope;      // DecodeTile::rope
  Element element;
  KvFormat format;
  bool rows_of_chunks;
  int compute_units;
};

struct DecodePlan {
  DecodeKernel kernel;
  int tiles;
  int splits;     // of each sequence; of all on average where they are balanced
  int at_once;    // DecodeArgs::at_once: above 0, sequences are balanced
  int64_t slots;  // splits that the grid has for each tile and key head

  bool joined(int64_t batch) const { return slots > batch; }
};

// As the configuration and the names of kernels have it.
const char* name_of(KvFormat format);

// The largest head_dim and head_dim_v that a kernel has for caches of the format.
int max_decode_columns(KvFormat format);

// num_splits: 0 leaves the number to us. Throws std::out_of_range when no kernel has the columns.
DecodePlan plan_decode(const DecodeProblem& problem, int64_t num_splits);

}  // namespace flashattn
