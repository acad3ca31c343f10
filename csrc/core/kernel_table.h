// One row for each forward kernel in the code objects; the rows are generated from configs/.
#pragma once

#include "core/tile.h"

namespace flashattn {

struct FwdKernel {
  const char* name;
  Tile tile;
  Mask mask;
};

}  // namespace flashattn
