#include "timing/lds_unit.h"

#include <algorithm>
#include <numeric>

namespace fasim {
namespace {

constexpr uint64_t kPortClocks = 16;  // of the instruction that queues are sized by, a b128 read
constexpr uint64_t kLeastPort = 4;    // which lds_latency has in it

}  // namespace

LdsUnit::LdsUnit(const CardTiming& card, const Program& program)
    : card_(card),
      first_inst_(program.insts.data()),
      conflicts_(program.insts.size()),
      memos_(program.insts.size()) {}

uint64_t LdsUnit::takes_from(int simd) const {
  const uint64_t backlog = card_.lds_queue * kPortClocks, free = port_free_[simd / 2];
  return free > backlog ? free - backlog : 0;
}

uint64_t LdsUnit::send(Wave& wave, const InstTiming& timing, int simd, uint64_t t) {
  const Inst& inst = *wave.pc;
  const auto index = static_cast<size_t>(&inst - first_inst_);
  if (!memos_[index]) memos_[index] = std::make_unique<LdsMemo>();
  const LdsCost cost = lds_cost(wave, inst, timing, card_, *memos_[index]);
  uint64_t& port = port_free_[simd / 2];
  const uint64_t begin = std::max(t, port);
  array_free_ = std::max(begin, array_free_) + cost.array;
  port = std::max(begin + cost.port, array_free_);
  busy_clocks_ += cost.array;
  conflicts_[index] += cost.conflict;
  return port + card_.lds_latency - kLeastPort;
}

uint64_t LdsUnit::conflict_clocks() const {
  return std::accumulate(conflicts_.begin(), conflicts_.end(), uint64_t{0});
}

}  // namespace fasim
