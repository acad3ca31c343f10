#include "check/pending_loads.h"

#include <algorithm>

#include "check/text.h"

namespace fasim {
namespace {

constexpr uint32_t kMost[] = {63, 15};  // by Counter

uint8_t bit_of(Counter counter) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(counter));
}

bool covers(const Operand& o, Where where, uint16_t index) {
  return o.where == where && index >= o.index && index < o.index + o.dwords;
}

}  // namespace

void PendingLoads::reset() {
  for (Queue& q : queues_) q.first = q.size = q.out_of_order = 0;
}

// Loads into single registers of an older, wider one leave that one waiting for the whole of it.
void PendingLoads::forget_rows(Queue& q, const Operand& rows) {
  for (uint32_t i = 0; i < q.size; ++i) {
    Operand& older = q.at(i).dst;
    if (older.where == Where::vgpr && older.index >= rows.index &&
        older.index + older.dwords <= rows.index + rows.dwords)
      older = Operand();
  }
}

void PendingLoads::issue(Counter counter, const Load& load, uint64_t lanes,
                         RegisterState& registers) {
  Queue& q = queue(counter);
  // The hardware holds back the load that would pass the counter's range.
  const uint32_t most = kMost[static_cast<size_t>(counter)];
  if (q.size >= most && !q.out_of_order) wait(counter, most - 1, registers);
  if (q.size == Queue::kCapacity) wait(counter, 0, registers);
  const Operand& dst = load.dst;
  const auto end = static_cast<uint16_t>(dst.index + dst.dwords);
  if (dst.where == Where::vgpr) {
    if (registers.loads_into(dst)) forget_rows(q, dst);
    registers.start_loading(dst, bit_of(counter), lanes);
  } else if (dst.where == Where::sgpr) {
    for (uint16_t r = dst.index; r < end; ++r) registers.set_loading(r, true);
  }
  q.at(q.size++) = load;
  q.out_of_order += !load.in_order;
}

void PendingLoads::complete(Counter counter, const Load& load, RegisterState& registers) {
  const Operand& dst = load.dst;
  const auto end = static_cast<uint16_t>(dst.index + dst.dwords);
  if (dst.where == Where::vgpr) {
    registers.stop_loading(dst, bit_of(counter));
  } else if (dst.where == Where::sgpr) {
    for (uint16_t r = dst.index; r < end; ++r) registers.set_loading(r, false);
  }
}

void PendingLoads::wait(Counter counter, unsigned left, RegisterState& registers) {
  Queue& q = queue(counter);
  if (left && q.out_of_order) return complete_out_of_order(counter, left, registers);
  for (; q.size > left; --q.size) {
    complete(counter, q.at(0), registers);
    q.out_of_order -= !q.at(0).in_order;
    q.first = (q.first + 1) % Queue::kCapacity;
  }
  if (q.size == 0) q.first = 0;  // the same few entries stay in the host's cache
}

// What returns in any order may be all that is left, so of the rest only those are surely done that
// have `left` younger ones of their kind behind them.
void PendingLoads::complete_out_of_order(Counter counter, unsigned left, RegisterState& registers) {
  Queue& q = queue(counter);
  uint32_t in_order = q.size - q.out_of_order, kept = 0;
  for (uint32_t i = 0; i < q.size; ++i) {
    const Load load = q.at(i);
    const bool done = load.in_order && in_order-- > left;
    if (done)
      complete(counter, load, registers);
    else
      q.at(kept++) = load;
  }
  q.size = kept;
}

bool PendingLoads::may_follow(Counter counter, uint16_t row, const RegisterState& registers) const {
  // What is left of a FLAT load whose LDS side is done comes in the order of VMEM.
  const bool in_order = counter == Counter::vm || !queue(counter).out_of_order;
  return in_order && registers.loading[row] == bit_of(counter);
}

PendingLoads::Needed PendingLoads::needed_for(Where where, uint16_t index) const {
  constexpr const char* kNames[] = {"vmcnt", "lgkmcnt"};
  Needed needed;
  for (size_t c = 0; c < queues_.size(); ++c) {
    const Queue& q = queues_[c];
    for (uint32_t i = q.size; i-- > 0;) {
      if (!covers(q.at(i).dst, where, index)) continue;
      const uint32_t left = q.out_of_order ? 0 : q.size - 1 - i;
      needed.wait += needed.inst ? " " : "s_waitcnt ";
      needed.wait += text("%s(%u)", kNames[c], left);
      needed.inst = q.at(i).inst;
      break;
    }
  }
  return needed;
}

}  // namespace fasim
