// One row for each kernel in the code objects; the rows are generated from configs/.
#pragma once

#include "core/decode_args.h"
#include "core/decode_tile.h"
#include "core/tile.h"

namespace flashattn {

// Clocks of one workgroup on the card that the tuner measured (docs/tuning): what dispatch weighs.
struct FwdClocks {
  int fixed;      // prologue and epilogue
  int step;       // one step, alone on its compute unit
  int step_full;  // one step, with workgroups_per_cu of them on the compute unit
};

struct FwdKernel {
  const char* name;
  Tile tile;
  Element element;
  int workgroups_per_cu;
  FwdClocks clocks;
  bool split;  // takes SplitFwdArgs: cuts query blocks along the keys (core/fwd_split.h)
};

struct BwdKernel {
  const char* name;
  Tile tile;
  Element element;
  Gradient gradient;
};

struct DecodeKernel {
  const char* name;
  DecodeTile tile;
  Element element;
  KvFormat format;
  int workgroups_per_cu;
  // Time of a step's instructions over that of its bytes, while the whole card reads from memory.
  double compute_share;
};

}  // namespace flashattn
