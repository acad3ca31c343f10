#include "timing/vector_memory.h"

#include <algorithm>

#include "timing/lane_lines.h"

namespace fasim {
namespace {

constexpr uint64_t kAddressClocks = 16;  // of the instruction that the queue is sized by

uint64_t ceil_clock(double clock) { return static_cast<uint64_t>(clock + 0.999999); }

}  // namespace

uint64_t VectorMemory::takes_from() const {
  const uint64_t backlog = card_.vmem_queue * kAddressClocks;
  return address_free_ > backlog ? address_free_ - backlog : 0;
}

uint64_t VectorMemory::send(Wave& wave, const InstTiming& timing, uint64_t t) {
  const LaneLines lines = lane_lines(wave, *wave.pc, timing, card_.line_bytes, addresses_);
  const uint64_t begin = std::max(t, address_free_);
  stalled_clocks_ += begin - t;
  address_free_ = begin + lines.address_clocks;
  const auto sent = static_cast<double>(begin);
  double done = sent + card_.l1_latency;
  for (uint32_t i = 0; i < lines.count; ++i) {
    const bool updates = timing.is_store || timing.is_atomic;
    done = std::max(done, updates ? update(lines.line[i], lines.bytes[i], timing.is_atomic, sent)
                                  : load(lines.line[i], timing.bypass_l1, sent));
  }
  return ceil_clock(done);
}

double VectorMemory::load(uint64_t line, bool bypass_l1, double sent) {
  ++requests_;
  if (!bypass_l1 && l1_.access(line, /*write=*/false).hit) {
    ++hits_;
    return sent;
  }
  // 64 bytes a clock come back into L1.
  fill_free_ = std::max(fill_free_, memory_.read_line(line, sent)) + 1;
  return fill_free_;
}

double VectorMemory::update(uint64_t line, uint32_t bytes, bool is_atomic, double sent) {
  l1_.access(line, /*write=*/false, /*allocate=*/false);
  return is_atomic ? memory_.atomic_line(line, bytes, sent) : memory_.write_line(line, bytes, sent);
}

uint64_t ScalarMemory::send(const Wave& wave, const InstTiming& timing, uint64_t t) {
  uint64_t done = t + card_.smem_hit;
  const ScalarLines lines = scalar_lines(wave, *wave.pc, timing, card_.line_bytes, addresses_);
  for (uint64_t line = lines.first; line < lines.end; ++line) {
    if (cache_.access(line, /*write=*/false).hit) continue;
    done = std::max(done, ceil_clock(memory_.read_line(line, static_cast<double>(t))));
  }
  return done;
}

}  // namespace fasim
