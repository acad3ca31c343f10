#include "ops/autocast.h"

#include <ATen/autocast_mode.h>

#include "ops/redispatch.h"

namespace flashattn {
namespace {

// float64 stays as it is, and is refused below.
at::Tensor cast(const at::Tensor& tensor, at::ScalarType dtype) {
  return at::autocast::cached_cast(dtype, tensor, tensor.device().type());
}

at::Tensor cast(const at::Tensor& tensor) {
  return cast(tensor, at::autocast::get_autocast_dtype(tensor.device().type()));
}

at::ScalarType dtype_beside(const at::Tensor& cache) {
  return cache.element_size() == 1 ? at::kHalf : cache.scalar_type();
}

}  // namespace

FwdResult fwd_autocast(FLASHATTN_FWD_PARAMETERS) {
  static const auto op = find_op<decltype(fwd)>("flashattn_rocm::fwd");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto call = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return op.call(FLASHATTN_FWD_ARGUMENTS);
  };
  return call(cast(q), cast(k), cast(v));
}

at::Tensor attn_probs_autocast(FLASHATTN_ATTN_PROBS_PARAMETERS) {
  static const auto op = find_op<decltype(attn_probs)>("flashattn_rocm::attn_probs");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto call = [&](const at::Tensor& q, const at::Tensor& k) {
    return op.call(FLASHATTN_ATTN_PROBS_ARGUMENTS);
  };
  return call(cast(q), cast(k));
}

DecodeResult decode_autocast(FLASHATTN_DECODE_PARAMETERS) {
  static const auto op = find_op<decltype(decode)>("flashattn_rocm::decode");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto call = [&](const at::Tensor& q) { return op.call(FLASHATTN_DECODE_ARGUMENTS); };
  return call(cast(q, dtype_beside(k_cache)));
}

at::Tensor append_kv_autocast(FLASHATTN_APPEND_PARAMETERS) {
  static const auto op = find_op<decltype(append_kv)>("flashattn_rocm::append_kv_");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType dtype = dtype_beside(k_cache);
  const auto of = [&](const OptionalTensor& tensor) {
    return tensor ? OptionalTensor(cast(*tensor, dtype)) : std::nullopt;
  };
  const auto call = [&](const at::Tensor& k, const at::Tensor& v, const OptionalTensor& q,
                        const OptionalTensor& rotary_cos, const OptionalTensor& rotary_sin) {
    return op.call(FLASHATTN_APPEND_ARGUMENTS);
  };
  return call(cast(k, dtype), cast(v, dtype), of(q), of(rotary_cos), of(rotary_sin));
}

}  // namespace flashattn
