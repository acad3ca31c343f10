// The two layouts of hipDeviceProp_t.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/card.h"
#include "hip/abi.h"

namespace fasim::hip {

// hipDeviceArch_t, a word of one-bit fields; from bit 0: 32-bit global atomics, float exchange
// global, 32-bit LDS atomics, float exchange LDS, float add, 64-bit global atomics, 64-bit LDS
// atomics, doubles, vote, ballot, shuffle, funnel shift, system fence, syncthreads extensions,
// surfaces, 3D grid, dynamic parallelism.
inline constexpr uint32_t kArchFeatures = 0b0'1001'0111'1111'1111;

// hipGetDeviceProperties: the layout up to HIP 5.
struct PropertiesR0000 {
  char name[256];
  size_t total_global_mem, shared_mem_per_block;
  int regs_per_block, warp_size, max_threads_per_block, max_threads_dim[3], max_grid_size[3];
  int clock_rate, memory_clock_rate, memory_bus_width;
  size_t total_const_mem;
  int major, minor, multi_processor_count, l2_cache_size, max_threads_per_multi_processor;
  int compute_mode, clock_instruction_rate;
  uint32_t arch;
  int concurrent_kernels, pci_domain_id, pci_bus_id, pci_device_id;
  size_t max_shared_memory_per_multi_processor;
  int is_multi_gpu_board, can_map_host_memory, gcn_arch;
  char gcn_arch_name[256];
  int integrated, cooperative_launch, cooperative_multi_device_launch;
  int max_texture_1d_linear, max_texture_1d, max_texture_2d[2], max_texture_3d[3];
  unsigned *hdp_mem_flush_cntl, *hdp_reg_flush_cntl;
  size_t mem_pitch, texture_alignment, texture_pitch_alignment;
  int kernel_exec_timeout_enabled, ecc_enabled, tcc_driver;
  int cooperative_multi_device_unmatched[4];
  int is_large_bar, asic_revision, managed_memory, direct_managed_mem_access_from_host;
  int concurrent_managed_access, pageable_memory_access;
  int pageable_memory_access_uses_host_page_tables;
};
static_assert(sizeof(PropertiesR0000) == 792);

// hipGetDevicePropertiesR0600: the layout from HIP 6 on.
struct PropertiesR0600 {
  char name[256];
  Uuid uuid;
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_mem, shared_mem_per_block;
  int regs_per_block, warp_size;
  size_t mem_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3], clock_rate;
  size_t total_const_mem;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int device_overlap, multi_processor_count, kernel_exec_timeout_enabled, integrated;
  int can_map_host_memory, compute_mode;
  int max_texture_1d, max_texture_1d_mipmap, max_texture_1d_linear, max_texture_2d[2];
  int max_texture_2d_mipmap[2], max_texture_2d_linear[3], max_texture_2d_gather[2];
  int max_texture_3d[3], max_texture_3d_alt[3], max_texture_cubemap, max_texture_1d_layered[2];
  int max_texture_2d_layered[3], max_texture_cubemap_layered[2];
  int max_surface_1d, max_surface_2d[2], max_surface_3d[3], max_surface_1d_layered[2];
  int max_surface_2d_layered[3], max_surface_cubemap, max_surface_cubemap_layered[2];
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id, tcc_driver;
  int async_engine_count, unified_addressing, memory_clock_rate, memory_bus_width;
  int l2_cache_size, persisting_l2_cache_max_size, max_threads_per_multi_processor;
  int stream_priorities_supported, global_l1_cache_supported, local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor, managed_memory, is_multi_gpu_board, multi_gpu_board_group_id;
  int host_native_atomic_supported, single_to_double_precision_perf_ratio;
  int pageable_memory_access, concurrent_managed_access, compute_preemption_supported;
  int can_use_host_pointer_for_registered_mem, cooperative_launch;
  int cooperative_multi_device_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables, direct_managed_mem_access_from_host;
  int max_blocks_per_multi_processor, access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported, sparse_hip_array_supported, host_register_read_only_supported;
  int timeline_semaphore_interop_supported, memory_pools_supported, gpu_direct_rdma_supported;
  unsigned gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned memory_pool_supported_handle_types;
  int deferred_mapping_hip_array_supported, ipc_event_supported, cluster_launch;
  int unified_function_pointers;
  int reserved[63], hip_reserved[32];
  char gcn_arch_name[256];
  size_t max_shared_memory_per_multi_processor;
  int clock_instruction_rate;
  uint32_t arch;
  unsigned *hdp_mem_flush_cntl, *hdp_reg_flush_cntl;
  int cooperative_multi_device_unmatched[4];
  int is_large_bar, asic_revision;
};
static_assert(sizeof(PropertiesR0600) == 1472);

void fill(PropertiesR0000& properties, const Card& card);
void fill(PropertiesR0600& properties, const Card& card);

}  // namespace fasim::hip
