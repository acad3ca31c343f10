// The binary interface of HIP that the facade implements: numbers and struct layouts only.
//
// It is written down here, and not taken from an installed HIP header, because one library serves
// programs of HIP 5, 6 and 7: the property struct exists in two layouts behind two symbols, and
// installed headers know only their own. tests/sim/hip compares it with an installed header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fasim::hip {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

enum MemcpyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kMemcpyDefault = 4,
  kDeviceToDeviceNoCu = 1024,
};

// The numbers of HIP 6; HIP 5 counted from host = 0.
enum MemoryType : int {
  kMemoryUnregistered = 0,
  kMemoryHost = 1,
  kMemoryDevice = 2,
};

struct PointerAttributes {
  int type;  // MemoryType
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned allocation_flags;
};

struct FuncAttributes {
  int binary_version;
  int cache_mode_ca;
  size_t const_size_bytes;
  size_t local_size_bytes;
  int max_dynamic_shared_size_bytes;
  int max_threads_per_block;
  int num_regs;
  int preferred_shmem_carveout;
  int ptx_version;
  size_t shared_size_bytes;
};

enum FuncAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedSizeBytes,
  kConstSizeBytes,
  kLocalSizeBytes,
  kNumRegs,
  kPtxVersion,
  kBinaryVersion,
  kCacheModeCa,
  kMaxDynamicSharedSizeBytes,
  kPreferredSharedMemoryCarveout,
};

struct Uuid {
  char bytes[16];
};

struct HostRegistration {  // what clang puts into .hipFatBinSegment
  uint32_t magic;
  uint32_t version;
  const void* image;
  void* unused;
};
inline constexpr uint32_t kHostRegistrationMagic = 0x48495046;  // "HIPF"

// The markers in hipModuleLaunchKernel's `extra`.
inline constexpr uintptr_t kLaunchParamBuffer = 1, kLaunchParamSize = 2, kLaunchParamEnd = 3;

// Stream handles that are no pointers.
inline constexpr uintptr_t kNullStream = 0, kLegacyStream = 1, kPerThreadStream = 2;

}  // namespace fasim::hip
