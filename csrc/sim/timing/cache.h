// A set-associative cache of line tags with least-recently-used replacement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fasim {

class Cache {
 public:
  struct Result {
    bool hit = false;
    bool evicted_dirty = false;
  };

  Cache(uint32_t bytes, uint32_t ways, uint32_t line_bytes)
      : ways_(ways), sets_(bytes / line_bytes / ways), lines_(size_t{sets_} * ways) {}

  // `line` is an address divided by the line size.
  Result access(uint64_t line, bool write, bool allocate = true) {
    Line* set = &lines_[size_t{hash(line)} * ways_];
    for (Line* l = set; l != set + ways_; ++l) {
      if (l->tag != line) continue;
      l->used = ++now_;
      l->dirty |= write;
      return {.hit = true};
    }
    if (!allocate) return {};
    Line* victim = std::min_element(set, set + ways_,
                                    [](const Line& a, const Line& b) { return a.used < b.used; });
    const Result result = {.evicted_dirty = victim->dirty};
    *victim = {.tag = line, .used = ++now_, .dirty = write};
    return result;
  }

  void invalidate() { std::fill(lines_.begin(), lines_.end(), Line{}); }
  uint64_t dirty_lines() const {
    return static_cast<uint64_t>(
        std::count_if(lines_.begin(), lines_.end(), [](const Line& l) { return l.dirty; }));
  }

 private:
  struct Line {
    uint64_t tag = ~0ull;
    uint64_t used = 0;
    bool dirty = false;
  };

  // Folds high address bits in, so that a power-of-two row stride does not fall on few sets.
  uint32_t hash(uint64_t line) const {
    return static_cast<uint32_t>((line ^ (line >> 12) ^ (line >> 20)) % sets_);
  }

  uint32_t ways_;
  uint32_t sets_;
  std::vector<Line> lines_;
  uint64_t now_ = 0;
};

}  // namespace fasim
