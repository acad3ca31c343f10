// Loads and stores that s_waitcnt has not covered yet, and the registers that wait for them.
//
// VMEM loads and stores return in issue order under vmcnt, LDS in order under lgkmcnt. SMEM and
// FLAT return in any order, so that only a count of 0 says something about them; a FLAT load waits
// for both counters.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "check/register_state.h"

namespace fasim {

class PendingLoads {
 public:
  struct Load {
    const Inst* inst = nullptr;
    Operand dst;  // where == none: a store
    bool in_order = true;
  };

  void reset();
  // Marks the destination as loading; afterwards it is defined in `lanes`. FLAT issues the same
  // load to both counters.
  void issue(Counter counter, const Load& load, uint64_t lanes, RegisterState& registers);
  // s_waitcnt: at most `left` of the counter's loads and stores are outstanding from here on.
  void wait(Counter counter, unsigned left, RegisterState& registers);

  bool at_rest(Counter counter) const { return queue(counter).size == 0; }
  // Whether a load of the same counter may overwrite `row` while it is loading: in-order results
  // arrive one after the other.
  bool may_follow(Counter counter, uint16_t row, const RegisterState& registers) const;

  struct Needed {
    const Inst* inst = nullptr;
    std::string wait;  // "s_waitcnt vmcnt(1)"
  };
  // The load that the register waits for, and what would cover it.
  Needed needed_for(Where where, uint16_t index) const;

 private:
  // Oldest first.
  struct Queue {
    static constexpr uint32_t kCapacity = 64;
    std::array<Load, kCapacity> loads;
    uint32_t first = 0, size = 0, out_of_order = 0;

    Load& at(uint32_t i) { return loads[(first + i) % kCapacity]; }
    const Load& at(uint32_t i) const { return loads[(first + i) % kCapacity]; }
  };

  // A younger load of the same queue writes these rows last.
  void forget_rows(Queue& queue, const Operand& rows);
  void complete(Counter counter, const Load& load, RegisterState& registers);
  void complete_out_of_order(Counter counter, unsigned left, RegisterState& registers);
  Queue& queue(Counter counter) { return queues_[static_cast<size_t>(counter)]; }
  const Queue& queue(Counter counter) const { return queues_[static_cast<size_t>(counter)]; }

  std::array<Queue, 2> queues_;
};

}  // namespace fasim
