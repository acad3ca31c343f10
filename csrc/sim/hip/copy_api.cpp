// The hipMemcpy and hipMemset families. Everything is complete when the call returns, which is one
// of the orders that the asynchronous ones allow.
#include "hip/abi.h"
#include "hip/api.h"
#include "hip/copy.h"
#include "hip/runtime.h"

namespace fasim::hip {
namespace {

hipError_t copy_call(const char* function, void* dst, const void* src, size_t size, int kind,
                     const void* stream = nullptr) {
  return api(function, [&] {
    require_stream(stream);
    copy(dst, src, size, kind);
  });
}

hipError_t rows_call(const char* function, const CopyRows& rows, int kind,
                     const void* stream = nullptr) {
  return api(function, [&] {
    require_stream(stream);
    copy_rows(rows, kind);
  });
}

hipError_t fill_call(const char* function, void* dst, uint32_t value, size_t element_size,
                     size_t count, const void* stream = nullptr) {
  return api(function, [&] {
    require_stream(stream);
    fill_memory(dst, value, element_size, count);
  });
}

hipError_t fill_rows_call(const char* function, void* dst, size_t pitch, int value, size_t width,
                          size_t height, const void* stream = nullptr) {
  return api(function, [&] {
    require_stream(stream);
    if (width > pitch)
      fail(hipErrorInvalidPitchValue,
           "width=" + std::to_string(width) + ", allowed: up to pitch=" + std::to_string(pitch));
    for (size_t row = 0; row < height; ++row)
      fill_memory(static_cast<char*>(dst) + row * pitch, static_cast<uint32_t>(value), 1, width);
  });
}

}  // namespace

FASIM_API hipError_t hipMemcpy(void* dst, const void* src, size_t size, int kind) {
  return copy_call(__func__, dst, src, size, kind);
}

FASIM_API hipError_t hipMemcpyAsync(void* dst, const void* src, size_t size, int kind,
                                    const void* stream) {
  return copy_call(__func__, dst, src, size, kind, stream);
}

FASIM_API hipError_t hipMemcpyWithStream(void* dst, const void* src, size_t size, int kind,
                                         const void* stream) {
  return copy_call(__func__, dst, src, size, kind, stream);
}

FASIM_API hipError_t hipMemcpyHtoD(void* dst, const void* src, size_t size) {
  return copy_call(__func__, dst, src, size, kHostToDevice);
}

FASIM_API hipError_t hipMemcpyHtoDAsync(void* dst, const void* src, size_t size,
                                        const void* stream) {
  return copy_call(__func__, dst, src, size, kHostToDevice, stream);
}

FASIM_API hipError_t hipMemcpyDtoH(void* dst, const void* src, size_t size) {
  return copy_call(__func__, dst, src, size, kDeviceToHost);
}

FASIM_API hipError_t hipMemcpyDtoHAsync(void* dst, const void* src, size_t size,
                                        const void* stream) {
  return copy_call(__func__, dst, src, size, kDeviceToHost, stream);
}

FASIM_API hipError_t hipMemcpyDtoD(void* dst, const void* src, size_t size) {
  return copy_call(__func__, dst, src, size, kDeviceToDevice);
}

FASIM_API hipError_t hipMemcpyDtoDAsync(void* dst, const void* src, size_t size,
                                        const void* stream) {
  return copy_call(__func__, dst, src, size, kDeviceToDevice, stream);
}

FASIM_API hipError_t hipMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                 size_t width, size_t height, int kind) {
  return rows_call(__func__, {dst, dst_pitch, src, src_pitch, width, height}, kind);
}

FASIM_API hipError_t hipMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src,
                                      size_t src_pitch, size_t width, size_t height, int kind,
                                      const void* stream) {
  return rows_call(__func__, {dst, dst_pitch, src, src_pitch, width, height}, kind, stream);
}

FASIM_API hipError_t hipMemset(void* dst, int value, size_t size) {
  return fill_call(__func__, dst, static_cast<uint32_t>(value), 1, size);
}

FASIM_API hipError_t hipMemsetAsync(void* dst, int value, size_t size, const void* stream) {
  return fill_call(__func__, dst, static_cast<uint32_t>(value), 1, size, stream);
}

FASIM_API hipError_t hipMemsetD8(void* dst, unsigned char value, size_t count) {
  return fill_call(__func__, dst, value, 1, count);
}

FASIM_API hipError_t hipMemsetD8Async(void* dst, unsigned char value, size_t count,
                                      const void* stream) {
  return fill_call(__func__, dst, value, 1, count, stream);
}

FASIM_API hipError_t hipMemsetD16(void* dst, unsigned short value, size_t count) {
  return fill_call(__func__, dst, value, 2, count);
}

FASIM_API hipError_t hipMemsetD16Async(void* dst, unsigned short value, size_t count,
                                       const void* stream) {
  return fill_call(__func__, dst, value, 2, count, stream);
}

FASIM_API hipError_t hipMemsetD32(void* dst, int value, size_t count) {
  return fill_call(__func__, dst, static_cast<uint32_t>(value), 4, count);
}

FASIM_API hipError_t hipMemsetD32Async(void* dst, int value, size_t count, const void* stream) {
  return fill_call(__func__, dst, static_cast<uint32_t>(value), 4, count, stream);
}

FASIM_API hipError_t hipMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return fill_rows_call(__func__, dst, pitch, value, width, height);
}

FASIM_API hipError_t hipMemset2DAsync(void* dst, size_t pitch, int value, size_t width,
                                      size_t height, const void* stream) {
  return fill_rows_call(__func__, dst, pitch, value, width, height, stream);
}

}  // namespace fasim::hip
