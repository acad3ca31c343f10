#include "ops/autocast.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace flashattn {
namespace {

// float64 stays as it is, and is refused below.
at::Tensor cast(const at::Tensor& tensor) {
  const at::DeviceType device = tensor.device().type();
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), tensor, device);
}

template <class Op>
auto below_autocast(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Op>();
}

}  // namespace

FwdResult fwd_autocast(FLASHATTN_FWD_PARAMETERS) {
  static const auto op = below_autocast<decltype(fwd)>("flashattn_rocm::fwd");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto call = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return op.call(FLASHATTN_FWD_ARGUMENTS);
  };
  return call(cast(q), cast(k), cast(v));
}

at::Tensor attn_probs_autocast(FLASHATTN_ATTN_PROBS_PARAMETERS) {
  static const auto op = below_autocast<decltype(attn_probs)>("flashattn_rocm::attn_probs");
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto call = [&](const at::Tensor& q, const at::Tensor& k) {
    return op.call(FLASHATTN_ATTN_PROBS_ARGUMENTS);
  };
  return call(cast(q), cast(k));
}

}  // namespace flashattn
