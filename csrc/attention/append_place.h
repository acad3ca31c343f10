// Where a new token of a sequence goes in the cache.
#pragma once

#include <hip/hip_runtime.h>

#include "attention/batch_of_grid.h"
#include "core/decode_args.h"

namespace flashattn {

// A workgroup's token.
struct NewToken {
  int batch;
  int index;  // of those that are new
  int held;   // keys before them; no more than the cache holds, so that sums stay in int32

  __device__ static NewToken from_grid(const AppendArgs& args) {
    const int batch = batch_of_grid();
    const int held = batch < args.batch ? args.cache.seqlens[batch] : 0;
    return {batch, static_cast<int>(blockIdx.x),
            held < args.cache.capacity ? held : args.cache.capacity};
  }
  __device__ int position() const { return held + index; }
};

// A row of an item of the cache; no such row if the item is negative.
struct AppendPlace {
  int item = -1;
  int row = 0;

  __device__ static AppendPlace of(const KvCache& cache, const NewToken& token) {
    const int position = token.position();
    if (position < 0 || position >= cache.capacity) return {};
    int item = cache.batch_idx == nullptr ? token.batch : cache.batch_idx[token.batch];
    int row = position;
    if (cache.block_table != nullptr) {
      item = cache.block_table[token.batch * cache.table_stride + position / cache.page_size];
      row = position % cache.page_size;
    }
    return item >= 0 && item < cache.items ? AppendPlace{item, row} : AppendPlace{};
  }
  __device__ bool exists() const { return item >= 0; }
};

}  // namespace flashattn
