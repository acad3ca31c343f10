// What a workgroup's waves find when they start, and the memory that belongs to them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/wave.h"

namespace fasim {

// SGPRs are allocated in blocks of 16.
inline uint32_t allocated_sgprs(const KernelDescriptor& d) { return (d.sgprs() + 15) / 16 * 16; }

// Registers, LDS and scratch of one workgroup; reused by the next.
class WorkgroupMemory {
 public:
  explicit WorkgroupMemory(const Launch& launch);

  // Poisons everything and puts each wave at the kernel's entry.
  void reset(const Launch& launch, const uint32_t workgroup[3], MemoryPort& port,
             RegisterCheck& registers);

  std::vector<Wave> waves;

  uint64_t scratch_begin() const { return reinterpret_cast<uint64_t>(scratch_.get()); }
  uint64_t scratch_bytes() const { return waves.size() * scratch_bytes_per_wave_; }

 private:
  void init_scalars(const Launch& launch, const uint32_t workgroup[3], Wave& wave);
  void init_vectors(const Launch& launch, Wave& wave);

  struct Free {
    void operator()(void* p) const;
  };
  template <class T>
  using Block = std::unique_ptr<T[], Free>;

  uint32_t vgprs_;
  uint64_t scratch_bytes_per_wave_ = 0;
  Block<uint32_t> vgpr_file_;
  Block<uint8_t> lds_;
  Block<uint8_t> scratch_;
};

}  // namespace fasim
