// The one home of LDS arithmetic: kernels assert that their storage has this size, the build
// compares it with the code object, the host, the tuner and Python ask here.
#pragma once

#include "core/decode_tile.h"
#include "core/tile.h"

namespace flashattn {

inline constexpr int kLdsBytesPerWorkgroup = 65536;  // gfx906: one workgroup may take all 64 KiB

// Rows of Q and K end in 16 spare bytes. A row pitch of 16 bytes times an odd number keeps b128
// accesses aligned and puts the 16 rows that a wave reads at once on different banks.
inline constexpr int kRowPadHalves = 8;

// The same in words of 4 bytes: rows of V (for each column of head_dim_v a pair of keys, or a
// number of fp32) and of P.
inline constexpr int kRowPadWords = 4;

struct LdsBudget {
  int q;   // block_m rows of head_dim numbers; backward: and of head_dim_v
  int kv;  // K: block_n rows of head_dim numbers; V: block_n / 2 rows of pairs (key, its partner),
           // or, of fp32, block_n rows of numbers
  int p;   // block_m rows of p_keys / 2 pairs, or p_keys numbers of fp32
  int scales;  // bf16: a float for each row of Q and K, and two words for V

  constexpr int total() const { return q + kv + p + scales; }
};

constexpr int q_pitch_halves(const Tile& tile, Element element) {
  return tile.head_dim * halves_of(element) + kRowPadHalves;
}
constexpr int k_pitch_halves(const Tile& tile, Element element) {
  return tile.head_dim * halves_of(element) + kRowPadHalves;
}
constexpr int v_pitch_words(const Tile& tile) { return tile.head_dim_v + kRowPadWords; }
constexpr int p_pitch_words(const Tile& tile, Element element) {
  return tile.p_keys / per_word(element) + kRowPadWords;
}

constexpr LdsBudget fwd_lds_budget(const Tile& tile, Element element) {
  constexpr int half = 2, word = 4;  // bytes
  const int k = tile.block_n * k_pitch_halves(tile, element) * half;
  const int v = tile.block_n / per_word(element) * v_pitch_words(tile) * word;
  return {.q = tile.block_m * q_pitch_halves(tile, element) * half,
          .kv = tile.kv == KvBuffers::apart ? k + v : (k > v ? k : v),
          .p = tile.block_m * p_pitch_words(tile, element) * word,
          .scales = element == Element::bf16 ? (tile.block_m + tile.block_n + 4) * 4 : 0};
}

// The backward: columns of the other side that are in LDS at a time.
constexpr int columns_at_once(int columns) { return columns > 256 ? columns / 2 : columns; }

// The backward: two operands of the workgroup's own rows stay, and the two of the other side come
// in turns, each by rows and by pairs.
constexpr LdsBudget bwd_lds_budget(const Tile& tile, Element element) {
  constexpr int half = 2, pair = 4;  // bytes
  const int q_part = columns_at_once(tile.head_dim), v_part = columns_at_once(tile.head_dim_v);
  const int most = q_part > v_part ? q_part : v_part;
  const Tile widest = with_columns(tile, most, most);
  const int rows = tile.block_n * k_pitch_halves(widest, element) * half;
  const int pairs = tile.block_n / per_word(element) * v_pitch_words(widest) * pair;
  const Tile other = with_columns(tile, tile.head_dim_v, tile.head_dim_v);
  return {
      .q = tile.block_m * (q_pitch_halves(tile, element) + q_pitch_halves(other, element)) * half,
      .kv = rows > pairs ? rows : pairs,
      .p = tile.block_m * p_pitch_words(tile, element) * pair,
      .scales = element == Element::bf16 ? 2 * (tile.block_m + tile.block_n) * 4 : 0};
}

constexpr int lds_bytes(const Tile& tile, Element element) {
  return fwd_lds_budget(tile, element).total();
}

constexpr bool fits_lds(const Tile& tile, Element element, int reserve_bytes = 0) {
  return lds_bytes(tile, element) + reserve_bytes <= kLdsBytesPerWorkgroup;
}

// Decode: rows of O that the waves of a workgroup join at a time.
inline constexpr int kJoinRows = 2;

// Decode: Q, P and what raises a row's shift while keys are streamed; after that, in the same
// place, what joins the waves.
constexpr int decode_lds_bytes(const DecodeTile& tile, Element element) {
  const int word = 4, q_element = element == Element::f16 ? 2 : 4;
  const int p_words = tile.step_keys() / (element == Element::f16 ? 2 : 1);
  const int loop = tile.rows * tile.columns_q() * q_element +
                   tile.waves * p_words * tile.rows * word +
                   tile.waves * (kWaveSize + tile.pass_rows()) * word;
  const int passes = tile.rows / tile.pass_rows();
  const int join = tile.waves * tile.values().groups * kJoinRows * tile.head_dim * word +
                   tile.waves * (passes * kWaveSize + 2 * tile.rows) * word + tile.rows * word;
  const int item = 8 * word;  // DecodeItem (attention/decode_shape.h): 7 numbers, and its alignment
  return (loop > join ? loop : join) + item;
}

}  // namespace flashattn
