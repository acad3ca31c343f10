#include "ops/dispatch.h"

#include <set>
#include <stdexcept>
#include <string>

#include "fwd_table.h"

namespace flashattn {
namespace {

constexpr bool one_row_per_key(std::span<const FwdKernel> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      if (rows[i].tile.head_dim == rows[j].tile.head_dim && rows[i].mask == rows[j].mask) {
        return false;
      }
    }
  }
  return true;
}
static_assert(one_row_per_key(kFwdKernels), "configs/ has two tiles for one head_dim and mask");

}  // namespace

std::span<const FwdKernel> fwd_kernels() { return kFwdKernels; }

const std::vector<int>& served_head_dims() {
  static const std::vector<int> dims = [] {
    std::set<int> sorted;
    for (const FwdKernel& row : kFwdKernels) sorted.insert(row.tile.head_dim);
    return std::vector<int>(sorted.begin(), sorted.end());
  }();
  return dims;
}

const FwdKernel& find_fwd_kernel(int head_dim, Mask mask) {
  for (const FwdKernel& row : kFwdKernels) {
    if (row.tile.head_dim == head_dim && row.mask == mask) return row;
  }
  throw std::out_of_range("no forward kernel for head_dim " + std::to_string(head_dim) +
                          (mask == Mask::causal ? ", causal" : ", full"));
}

}  // namespace flashattn
