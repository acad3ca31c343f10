// An op as torch's dispatcher serves it to a kernel that stands before others (autograd, autocast).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace flashattn {

// Op: the signature. Keep the result: to find it takes a lock.
template <class Op>
auto find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Op>();
}

}  // namespace flashattn
