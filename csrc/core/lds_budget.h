// The one home of LDS arithmetic: kernels assert that their storage has this size, the build
// compares it with the code object, the host, the tuner and Python ask here.
#pragma once

#include "core/tile.h"

namespace flashattn {

inline constexpr int kLdsBytesPerWorkgroup = 65536;  // gfx906: one workgroup may take all 64 KiB

// Rows of Q and K end in 16 spare bytes. A row pitch of 16 bytes times an odd number keeps b128
// accesses aligned and puts the 16 rows that a wave reads at once on different banks.
inline constexpr int kRowPadHalves = 8;

// The same, in pairs of halves: rows of V (pairs of keys along a row of head_dim_v) and of P.
inline constexpr int kRowPadPairs = 4;

struct LdsBudget {
  int q;   // block_m rows of head_dim halves
  int kv;  // K: block_n rows of head_dim halves; V: block_n / 2 rows of pairs (key, its partner)
  int p;   // block_m rows of p_keys / 2 pairs
  int scales;  // bf16: a float for each row of Q and K, and two words for V

  constexpr int total() const { return q + kv + p + scales; }
};

constexpr int q_pitch_halves(const Tile& tile) { return tile.head_dim + kRowPadHalves; }
constexpr int k_pitch_halves(const Tile& tile) { return tile.head_dim + kRowPadHalves; }
constexpr int v_pitch_pairs(const Tile& tile) { return tile.head_dim_v + kRowPadPairs; }
constexpr int p_pitch_pairs(const Tile& tile) { return tile.p_keys / 2 + kRowPadPairs; }

constexpr LdsBudget fwd_lds_budget(const Tile& tile, Element element) {
  constexpr int half = 2, pair = 4;  // bytes
  const int k = tile.block_n * k_pitch_halves(tile) * half;
  const int v = tile.block_n / 2 * v_pitch_pairs(tile) * pair;
  return {.q = tile.block_m * q_pitch_halves(tile) * half,
          .kv = tile.kv == KvBuffers::apart ? k + v : (k > v ? k : v),
          .p = tile.block_m * p_pitch_pairs(tile) * pair,
          .scales = element == Element::bf16 ? (tile.block_m + tile.block_n + 4) * 4 : 0};
}

constexpr int lds_bytes(const Tile& tile, Element element) {
  return fwd_lds_budget(tile, element).total();
}

constexpr bool fits_lds(const Tile& tile, Element element, int reserve_bytes = 0) {
  return lds_bytes(tile, element) + reserve_bytes <= kLdsBytesPerWorkgroup;
}

}  // namespace flashattn
