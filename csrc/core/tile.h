// A tile: what one workgroup of the forward computes at a time. Rows come from configs/<arch>.toml.
#pragma once

namespace flashattn {

inline constexpr int kWaveSize = 64;

struct Tile {
  int head_dim;  // elements of one row of Q, K, V and O
  int block_m;   // query rows of a workgroup
  int block_n;   // keys of one step
  int waves;     // waves of a workgroup; each owns block_m / waves whole query rows

  constexpr int threads() const { return waves * kWaveSize; }
  constexpr int rows_per_wave() const { return block_m / waves; }

  friend constexpr bool operator==(const Tile&, const Tile&) = default;
};

// Which keys a query row may see. Causal is aligned at the bottom right, as in flash-attn:
// key j is visible to row i iff j <= i + seqlen_k - seqlen_q.
enum class Mask { full, causal };

}  // namespace flashattn
