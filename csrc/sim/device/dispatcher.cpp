#include "device/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fasim {
namespace {

// The state that the workers of one launch share.
class Dispatch {
 public:
  Dispatch(const Launch& launch, TraceSink* trace)
      : launch_(launch),
        trace_(trace),
        groups_(uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]) {}
  Dispatch(const Launch& launch, std::span<const uint64_t> chosen, std::span<uint64_t> instructions)
      : launch_(launch),
        trace_(nullptr),
        chosen_(chosen),
        instructions_(instructions),
        groups_(chosen.size()) {}

  uint64_t groups() const { return groups_; }

  // Takes workgroups until none is left or one has faulted.
  void work() noexcept {
    try {
      WorkgroupRunner runner(launch_);
      WorkgroupStats stats;
      while (!failed_.load(std::memory_order_relaxed)) {
        const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= groups_) break;
        const uint64_t group = chosen_.empty() ? index : chosen_[index];
        const uint64_t row = group / launch_.grid[0];
        const WorkgroupStats one = runner.run(static_cast<uint32_t>(group % launch_.grid[0]),
                                              static_cast<uint32_t>(row % launch_.grid[1]),
                                              static_cast<uint32_t>(row / launch_.grid[1]), trace_);
        if (!instructions_.empty()) instructions_[index] = one.wave_instructions;
        stats += one;
      }
      const std::lock_guard lock(mutex_);
      total_ += stats;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_failure_) first_failure_ = std::current_exception();
      failed_.store(true, std::memory_order_relaxed);
    }
  }

  WorkgroupStats result() const {
    if (first_failure_) std::rethrow_exception(first_failure_);
    return total_;
  }

 private:
  const Launch& launch_;
  TraceSink* const trace_;
  const std::span<const uint64_t> chosen_;  // empty: all
  const std::span<uint64_t> instructions_;  // of each chosen group; empty: not wanted
  const uint64_t groups_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  WorkgroupStats total_;
  std::exception_ptr first_failure_;
};

}  // namespace

unsigned worker_count() {
  const char* const text = std::getenv("FLASHATTN_SIM_THREADS");
  if (text == nullptr) return std::max(1u, std::thread::hardware_concurrency());
  unsigned count = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), count);
  if (error != std::errc{} || *end != '\0' || count == 0)
    throw std::runtime_error(std::string("FLASHATTN_SIM_THREADS=") + text +
                             ", allowed: numbers of 1 or more");
  return count;
}

namespace {

WorkgroupStats run(Dispatch& shared, uint64_t workers) {
  // Threads are made for each launch (about 20 us each, against milliseconds of simulation): a
  // lasting pool would not survive a fork, and data loaders fork.
  std::vector<std::jthread> threads;
  for (uint64_t i = 1; i < workers; ++i) threads.emplace_back([&shared] { shared.work(); });
  shared.work();
  threads.clear();  // joins
  return shared.result();
}

}  // namespace

WorkgroupStats dispatch(const Launch& launch, TraceSink* trace) {
  Dispatch shared(launch, trace);
  return run(shared, trace != nullptr ? 1 : std::min<uint64_t>(worker_count(), shared.groups()));
}

WorkgroupStats dispatch(const Launch& launch, std::span<const uint64_t> groups,
                        std::span<uint64_t> instructions) {
  if (groups.empty()) return {};
  Dispatch shared(launch, groups, instructions);
  return run(shared, std::min<uint64_t>(worker_count(), shared.groups()));
}

}  // namespace fasim
