// A whole HIP program, host and device: what a user compiles with hipcc.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    const hipError_t error = (call);                                     \
    if (error != hipSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error)); \
      return 1;                                                          \
    }                                                                    \
  } while (0)

__constant__ float offset;
__device__ int finished;

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] + offset;
  if (i == 0) finished = 1;
}

__global__ void write_null(float* p) { p[threadIdx.x] = 1.0f; }

int main() {
  constexpr int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = i, b[i] = 2 * i;
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  float *da, *db, *dc;
  CHECK(hipMalloc(&da, n * sizeof(float)));
  CHECK(hipMalloc(&db, n * sizeof(float)));
  CHECK(hipMalloc(&dc, n * sizeof(float)));
  CHECK(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice));
  const float half = 0.5f;
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(offset), &half, sizeof(half)));
  int grid, block;
  CHECK(hipOccupancyMaxPotentialBlockSize(&grid, &block, vector_add, 0, 256));
  hipFuncAttributes attributes;
  CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(vector_add)));
  void* address;
  size_t size;
  CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(finished)));
  CHECK(hipGetSymbolSize(&size, HIP_SYMBOL(finished)));
  hipStream_t stream;
  CHECK(hipStreamCreate(&stream));
  vector_add<<<dim3((n + block - 1) / block), dim3(block), 0, stream>>>(da, db, dc, n);
  CHECK(hipGetLastError());
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
  int done = 0;
  CHECK(hipMemcpyFromSymbol(&done, HIP_SYMBOL(finished), sizeof(done)));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += c[i] != 3 * i + 0.5f;
  std::printf("%s: %d CUs, block %d, %d wrong of %d, finished %d\n", properties.name,
              properties.multiProcessorCount, block, wrong, n, done);
  int through_address = 0;
  CHECK(hipMemcpy(&through_address, address, size, hipMemcpyDeviceToHost));
  std::printf("up to %d threads, %d bytes of static LDS, symbol of %d bytes holds %d\n",
              attributes.maxThreadsPerBlock, static_cast<int>(attributes.sharedSizeBytes),
              static_cast<int>(size), through_address);
  write_null<<<1, 64>>>(nullptr);
  std::printf("null write: %s\n", hipGetErrorName(hipGetLastError()));
  std::printf("afterwards: %s\n", hipGetErrorName(hipDeviceSynchronize()));
  CHECK(hipFree(da));
  return wrong != 0;
}
