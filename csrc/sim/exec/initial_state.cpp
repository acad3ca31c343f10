#include "exec/initial_state.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace fasim {
namespace {

// Word 3 of the scratch V#: index stride 64, lane id added to the index.
constexpr uint32_t kScratchWord3 = 0x00e00000;
constexpr uint32_t kSwizzleEnable = 1u << 31;
// Wave scratch is allocated in units of 256 dwords.
constexpr uint64_t kScratchGranule = 1024;

void* allocate_aligned(size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  return p;
}

void poison(void* begin, size_t bytes) {
  std::fill_n(static_cast<uint32_t*>(begin), bytes / 4, kPoison);
}

uint32_t work_items(const Launch& launch) {
  return launch.block[0] * launch.block[1] * launch.block[2];
}

}  // namespace

void WorkgroupMemory::Free::operator()(void* p) const { std::free(p); }

WorkgroupMemory::WorkgroupMemory(const Launch& launch)
    : waves((work_items(launch) + kLanes - 1) / kLanes), vgprs_(launch.descriptor.vgprs()) {
  const uint64_t scratch = uint64_t{launch.private_bytes_per_lane} * kLanes;
  scratch_bytes_per_wave_ = (scratch + kScratchGranule - 1) / kScratchGranule * kScratchGranule;
  vgpr_file_.reset(static_cast<uint32_t*>(allocate_aligned(waves.size() * vgprs_ * kLanes * 4)));
  lds_.reset(static_cast<uint8_t*>(allocate_aligned(std::max(launch.lds_bytes, 64u))));
  scratch_.reset(static_cast<uint8_t*>(
      allocate_aligned(std::max<size_t>(waves.size() * scratch_bytes_per_wave_, 64))));
}

void WorkgroupMemory::reset(const Launch& launch, const uint32_t workgroup[3], MemoryPort& port,
                            RegisterCheck& registers) {
  poison(vgpr_file_.get(), waves.size() * vgprs_ * kLanes * 4);
  poison(lds_.get(), (launch.lds_bytes + 3) / 4 * 4);
  poison(scratch_.get(), waves.size() * scratch_bytes_per_wave_);
  const Program& program = *launch.program;
  for (uint32_t i = 0; i < waves.size(); ++i) {
    Wave& wave = waves[i];
    wave = Wave();
    wave.index = i;
    wave.vgpr = vgpr_file_.get() + uint64_t{i} * vgprs_ * kLanes;
    wave.vgprs = vgprs_;
    wave.pc = program.find(launch.entry);
    wave.program = &program;
    wave.constants = program.constants.data();
    wave.modifiers = program.modifiers.data();
    wave.memory = &port;
    wave.registers = &registers;
    wave.lds = lds_.get();
    wave.lds_bytes = launch.lds_bytes;
    wave.scratch = reinterpret_cast<uint64_t>(scratch_.get()) + i * scratch_bytes_per_wave_;
    wave.scratch_bytes_per_lane = launch.private_bytes_per_lane;
    wave.mode.bits = launch.descriptor.float_mode();
    wave.dx10_clamp = launch.descriptor.dx10_clamp();
    wave.ieee = launch.descriptor.ieee();
    wave.mode_changed();
    init_scalars(launch, workgroup, wave);
    init_vectors(launch, wave);
  }
}

// User SGPRs in the order of the ABI, then the system SGPRs.
void WorkgroupMemory::init_scalars(const Launch& launch, const uint32_t workgroup[3], Wave& wave) {
  const KernelDescriptor& d = launch.descriptor;
  wave.sgpr.fill(kPoison);
  uint32_t next = 0;
  auto push = [&](uint32_t value) { wave.sgpr[next++] = value; };
  auto push64 = [&](uint64_t value) {
    push(static_cast<uint32_t>(value));
    push(static_cast<uint32_t>(value >> 32));
  };
  const auto arena = reinterpret_cast<uint64_t>(scratch_.get());
  if (d.uses_private_buffer()) {
    push(static_cast<uint32_t>(arena));
    push(static_cast<uint32_t>(arena >> 32) | kSwizzleEnable);
    push(~0u);
    push(kScratchWord3);
  }
  if (d.uses_dispatch_packet()) push64(launch.dispatch_packet);
  if (d.uses_queue()) push64(0);
  if (d.uses_kernarg()) push64(launch.kernarg);
  if (d.uses_dispatch_id()) push64(0);
  if (d.uses_flat_scratch()) push64(arena);
  if (d.uses_private_size()) push(launch.private_bytes_per_lane);
  next = std::max(next, d.user_sgprs());
  for (int i = 0; i < 3; ++i) {
    if (d.workgroup_id(i)) push(workgroup[i]);
  }
  if (d.workgroup_info()) push(static_cast<uint32_t>(waves.size()));
  if (d.scratch_enabled()) push(static_cast<uint32_t>(wave.scratch - arena));
  wave.initial_sgprs = next;
}

void WorkgroupMemory::init_vectors(const Launch& launch, Wave& wave) {
  const uint32_t total = work_items(launch), first = wave.index * kLanes;
  const uint32_t active = std::min(kLanes, total - first);
  wave.write64(kExec, active == kLanes ? ~0ull : (1ull << active) - 1);
  const uint32_t ids = std::min(launch.descriptor.workitem_ids(), vgprs_);
  wave.initial_vgprs = ids;
  for (uint32_t lane = 0; lane < active; ++lane) {
    const uint32_t flat = first + lane, plane = launch.block[0] * launch.block[1];
    const uint32_t id[3] = {flat % launch.block[0], flat / launch.block[0] % launch.block[1],
                            flat / plane};
    for (uint32_t i = 0; i < ids; ++i) wave.row(i)[lane] = id[i];
  }
}

}  // namespace fasim
