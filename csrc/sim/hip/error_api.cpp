// Error queries.
#include "hip/api.h"

namespace fasim::hip {
namespace {

struct ErrorRow {
  hipError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorRow kErrors[] = {
#define FASIM_ROW(name, number, text) {name, #name, text},
    FASIM_HIP_ERRORS(FASIM_ROW)
#undef FASIM_ROW
};

const ErrorRow* find(int code) {
  for (const ErrorRow& row : kErrors)
    if (row.code == code) return &row;
  return nullptr;
}

const ErrorRow& find_or_unknown(int code) {
  const ErrorRow* row = find(code);
  return row != nullptr ? *row : *find(hipErrorUnknown);
}

hipError_t take_last_error() {
  const hipError_t error = last_error();
  clear_last_error();
  return error;
}

}  // namespace

FASIM_API hipError_t hipGetLastError() { return take_last_error(); }
FASIM_API hipError_t hipExtGetLastError() { return take_last_error(); }
FASIM_API hipError_t hipPeekAtLastError() { return last_error(); }

FASIM_API const char* hipGetErrorName(int code) { return find_or_unknown(code).name; }
FASIM_API const char* hipGetErrorString(int code) { return find_or_unknown(code).text; }

FASIM_API hipError_t hipDrvGetErrorName(int code, const char** name) {
  return api(__func__, [&] {
    require(name, "errorString");
    const ErrorRow* row = find(code);
    *name = row != nullptr ? row->name : nullptr;
    if (row == nullptr) fail(hipErrorInvalidValue, "error=" + std::to_string(code) + " is unknown");
  });
}

FASIM_API hipError_t hipDrvGetErrorString(int code, const char** text) {
  return api(__func__, [&] {
    require(text, "errorString");
    const ErrorRow* row = find(code);
    *text = row != nullptr ? row->text : nullptr;
    if (row == nullptr) fail(hipErrorInvalidValue, "error=" + std::to_string(code) + " is unknown");
  });
}

}  // namespace fasim::hip
