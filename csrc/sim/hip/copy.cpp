#include "hip/copy.h"

#include <cstring>
#include <string>

#include "hip/abi.h"
#include "hip/api.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

bool dst_is_device(int kind) {
  return kind == kHostToDevice || kind == kDeviceToDevice || kind == kDeviceToDeviceNoCu;
}

bool src_is_device(int kind) {
  return kind == kDeviceToHost || kind == kDeviceToDevice || kind == kDeviceToDeviceNoCu;
}

void require_kind(int kind) {
  if ((kind < kHostToHost || kind > kMemcpyDefault) && kind != kDeviceToDeviceNoCu)
    fail(hipErrorInvalidMemcpyDirection, "kind=" + std::to_string(kind) + ", allowed: 0 to 4");
}

void check_side(const void* pointer, size_t size, bool device, const char* argument) {
  require(pointer, argument);
  Runtime& runtime = Runtime::get();
  if (!device) {
    // Ordinary host memory is unknown here. HIP's own allocations have an end that can be checked;
    // a registered range is a part of some larger host buffer, so a copy may leave it.
    const auto known = runtime.allocations.find(pointer);
    device = known && known->kind != MemoryKind::registered_host;
  }
  if (device) require_on_device(runtime.device.memory(), pointer, size, argument);
}

}  // namespace

void copy(void* dst, const void* src, size_t size, int kind) {
  require_kind(kind);
  if (size == 0) return;
  check_side(dst, size, dst_is_device(kind), "dst");
  check_side(src, size, src_is_device(kind), "src");
  std::memmove(dst, src, size);
}

void copy_rows(const CopyRows& rows, int kind) {
  require_kind(kind);
  if (rows.width == 0 || rows.height == 0) return;
  if (rows.width > rows.dst_pitch || rows.width > rows.src_pitch)
    fail(hipErrorInvalidPitchValue,
         "width=" + std::to_string(rows.width) + ", allowed: up to dpitch=" +
             std::to_string(rows.dst_pitch) + " and spitch=" + std::to_string(rows.src_pitch));
  check_side(rows.dst, rows.dst_pitch * (rows.height - 1) + rows.width, dst_is_device(kind), "dst");
  check_side(rows.src, rows.src_pitch * (rows.height - 1) + rows.width, src_is_device(kind), "src");
  for (size_t row = 0; row < rows.height; ++row)
    std::memmove(static_cast<char*>(rows.dst) + row * rows.dst_pitch,
                 static_cast<const char*>(rows.src) + row * rows.src_pitch, rows.width);
}

void fill_memory(void* dst, uint32_t value, size_t element_size, size_t count) {
  if (count == 0) return;
  require_on_device(Runtime::get().device.memory(), dst, element_size * count, "dst");
  if (element_size == 1) {
    std::memset(dst, static_cast<int>(value & 0xff), count);
    return;
  }
  auto* to = static_cast<char*>(dst);
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * element_size, &value, element_size);
}

}  // namespace fasim::hip
