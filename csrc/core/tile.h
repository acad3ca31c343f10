// A tile: what one workgroup of the forward computes at a time, and how its data flows. Rows come
// from configs/<arch>.toml; an experiment is another row.
#pragma once

namespace flashattn {

inline constexpr int kWaveSize = 64;

// Where the K and V tiles of a step are in LDS: side by side, both written at the step's start; or
// in one buffer, V after K has been used. In turns costs two more barriers a step and half the
// space, which larger blocks can use.
enum class KvBuffers { apart, in_turns };

// How operands leave LDS in the two products: the next ones are read while the current ones are
// multiplied, or a group at a time right before its use.
enum class Operands { streamed, on_demand };

// When O follows the row maximum: only once it has grown by 2^8 (softmax_state.h), or in each step.
enum class Rescale { lazy, always };

// How rows move between global memory and registers: by 16 bytes, which wants a base and strides
// that are multiples of 4 bytes and rows of multiples of 16; or element by element.
enum class Access { chunks, elements };

// Whether a kernel can change scores between QK^T and the softmax (softcap, ALiBi, bias, mask) and
// drop probabilities after it.
enum class Scores { plain, modified };

// What numbers Q, K, V and O hold. Of 16 bits gfx906 computes in fp16 only (element.h).
enum class Element { f16, bf16, f32 };

// Tiles move through memory and LDS by halves, 2 bytes: a number of fp32 takes two.
constexpr int halves_of(Element element) { return element == Element::f32 ? 2 : 1; }

// The products take operands of 32 bits: pairs of fp16 (v_dot2_f32_f16), or one fp32 (v_fma_f32).
constexpr int per_word(Element element) { return element == Element::f32 ? 1 : 2; }

// Which gradients a kernel of the backward computes. Its workgroup owns block_m queries (dQ) or
// block_m keys (dK and dV) and walks over blocks of block_n keys or queries.
enum class Gradient { dq, dkdv };

struct Tile {
  int head_dim;    // columns of Q and K; a multiple of 16, rows of fewer are padded with zeros
  int head_dim_v;  // columns of V and O, likewise
  int block_m;     // query rows of a workgroup
  int block_n;     // keys of one step
  int waves;       // waves of a workgroup; each owns block_m / waves whole query rows
  int p_keys;      // keys whose probabilities are in LDS at once; divides block_n
  KvBuffers kv;
  Operands operands;
  Rescale rescale;
  Access access;
  Scores scores;

  constexpr int threads() const { return waves * kWaveSize; }
  constexpr int rows_per_wave() const { return block_m / waves; }

  friend constexpr bool operator==(const Tile&, const Tile&) = default;
};

// The same tile for operands with other columns.
constexpr Tile with_columns(Tile tile, int head_dim, int head_dim_v) {
  tile.head_dim = head_dim;
  tile.head_dim_v = head_dim_v;
  return tile;
}

}  // namespace flashattn
