#include "timing/memory_system.h"

#include <algorithm>
#include <bit>

namespace fasim {
namespace {

// L2 holds sectors of 32 bytes; HBM is asked for one or two of them.
constexpr uint32_t kSector = 32;

}  // namespace

MemorySystem::MemorySystem(const CardTiming& card)
    : card_(card),
      l2_(card.l2_bytes, card.l2_ways, card.line_bytes),
      l2_channels_(card.l2_channels),
      hbm_channels_(card.l2_channels) {
  // Each L2 channel has its own share of HBM: that is why strides which fall on few channels
  // starve.
  const double bytes_per_clk = card.hbm_gbps * 1e3 / card.clock_mhz / card.l2_channels;
  hbm_read_clocks_ = card.line_bytes / bytes_per_clk / card.hbm_read_efficiency;
  hbm_write_clocks_ = card.line_bytes / bytes_per_clk / card.hbm_write_efficiency;
}

uint32_t MemorySystem::channel(uint64_t line) const {
  // In whole groups of bits, as the number of channels has.
  const uint64_t index = line * card_.line_bytes / card_.l2_channel_interleave;
  uint64_t folded = index;
  for (uint32_t fold = 1; fold <= card_.l2_channel_folds; ++fold) {
    folded ^= index >> (fold * static_cast<uint32_t>(std::bit_width(card_.l2_channels - 1)));
  }
  return static_cast<uint32_t>(folded % card_.l2_channels);
}

// A channel looks up one request a clock, however few bytes it is about.
double MemorySystem::channel_clocks(uint32_t bytes) const {
  return std::max(1.0, static_cast<double>(bytes) / card_.l2_bytes_per_clk);
}

double MemorySystem::hbm_read(uint64_t line, double now) {
  counters_.hbm_read_bytes += card_.line_bytes;
  return hbm_channels_[channel(line)].serve(now, hbm_read_clocks_);
}

double MemorySystem::hbm_write(uint64_t line, double now) {
  counters_.hbm_write_bytes += card_.line_bytes;
  return hbm_channels_[channel(line)].serve(now, hbm_write_clocks_);
}

double MemorySystem::read_line(uint64_t line, double now) {
  ++counters_.l2_requests;
  const double sent = l2_channels_[channel(line)].serve(now, channel_clocks(card_.line_bytes));
  const Cache::Result found = l2_.access(line, /*write=*/false);
  if (found.evicted_dirty) hbm_write(line, sent);
  if (found.hit) {
    ++counters_.l2_hits;
    return sent + card_.l2_latency;
  }
  return hbm_read(line, sent) + card_.hbm_latency;
}

double MemorySystem::write_line(uint64_t line, uint32_t bytes, double now) {
  const double clocks = bytes < kSector ? card_.l2_partial_write : channel_clocks(bytes);
  return update_line(line, clocks, now);
}

double MemorySystem::atomic_line(uint64_t line, uint32_t bytes, double now) {
  return update_line(line, channel_clocks(bytes), now);
}

double MemorySystem::update_line(uint64_t line, double channel_clocks, double now) {
  ++counters_.l2_requests;
  const double sent = l2_channels_[channel(line)].serve(now, channel_clocks);
  const Cache::Result found = l2_.access(line, /*write=*/true);
  counters_.l2_hits += found.hit;
  // The dirty line must have left before its place is taken: pure writes run at HBM's rate.
  return (found.evicted_dirty ? hbm_write(line, sent) : sent) + card_.l2_latency;
}

void MemorySystem::flush() { counters_.hbm_write_bytes += l2_.dirty_lines() * card_.line_bytes; }

}  // namespace fasim
