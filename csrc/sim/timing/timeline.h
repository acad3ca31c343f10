// What the waves of one CU did when, for a picture of how loads and computing overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fasim {

struct TimelineEntry {
  int simd;
  uint64_t wave;    // waves of the CU in the order of their start
  uint64_t clock;   // of the issue
  uint64_t clocks;  // until the result is there; memory: until the data is back
  const char* kind;
};

// Keeps the first `most` entries.
class Timeline {
 public:
  explicit Timeline(size_t most) : most_(most) {}

  bool full() const { return entries_.size() >= most_; }
  void add(const TimelineEntry& entry) { entries_.push_back(entry); }
  const std::vector<TimelineEntry>& entries() const { return entries_; }

 private:
  size_t most_;
  std::vector<TimelineEntry> entries_;
};

}  // namespace fasim
