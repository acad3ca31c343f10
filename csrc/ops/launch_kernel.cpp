#include "ops/launch_kernel.h"

namespace flashattn {

void mark_written(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace flashattn
