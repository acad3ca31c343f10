// What all CUs share: L2 channels and HBM, as queues of bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/cache.h"
#include "timing/card_timing.h"

namespace fasim {

struct MemoryCounters {
  uint64_t l2_requests = 0;  // lines
  uint64_t l2_hits = 0;
  uint64_t hbm_read_bytes = 0;
  uint64_t hbm_write_bytes = 0;
};

// Serves one request after the other at a fixed rate.
class Pipe {
 public:
  // Returns when `clocks` of work that arrive at `now` are done.
  double serve(double now, double clocks) {
    free_ = (free_ > now ? free_ : now) + clocks;
    return free_;
  }
  double free_at() const { return free_; }

 private:
  double free_ = 0;
};

class MemorySystem {
 public:
  explicit MemorySystem(const CardTiming& card);

  // One line of an L1 miss; returns the clock at which it is back in the CU's L1.
  double read_line(uint64_t line, double now);
  // `bytes` of a line written through; returns the clock at which L2 holds them.
  double write_line(uint64_t line, uint32_t bytes, double now);
  // `bytes` of a line changed by atomics; returns the clock at which L2 has done them.
  double atomic_line(uint64_t line, uint32_t bytes, double now);
  // What dirty lines still owe to HBM at the end of a kernel.
  void flush();

  const MemoryCounters& counters() const { return counters_; }

 private:
  uint32_t channel(uint64_t line) const;
  double channel_clocks(uint32_t bytes) const;
  double update_line(uint64_t line, double channel_clocks, double now);
  double hbm_read(uint64_t line, double now);
  double hbm_write(uint64_t line, double now);

  CardTiming card_;
  Cache l2_;
  std::vector<Pipe> l2_channels_;
  std::vector<Pipe> hbm_channels_;
  double hbm_read_clocks_, hbm_write_clocks_;  // of a line, in its channel
  MemoryCounters counters_;
};

}  // namespace fasim
