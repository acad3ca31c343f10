// The strict checks of one wave: everything that is looked at before an instruction runs, and what
// memory instructions report while they run.
#pragma once

#include <cstdint>

#include "check/global_shadow.h"
#include "check/hazards.h"
#include "check/lds_shadow.h"
#include "check/pending_loads.h"
#include "check/register_state.h"
#include "exec/wave.h"

namespace fasim {

struct LanePointers;

// What the waves of a workgroup share.
struct GroupChecks {
  LdsShadow lds;
  GlobalShadow* global;  // null: the launch does not look for races between workgroups
  GlobalShadow::Group group;
};

class WaveChecks {
 public:
  // `wave` is in its initial state.
  void reset(const Wave& wave, GroupChecks& group);

  // Throws SimFault when `inst` may not run now. Most instructions are in a segment that has been
  // found to be in order when it was entered.
  [[gnu::always_inline]] void before(Wave& wave, const Inst& inst) {
    if (&inst >= trusted_end_) [[unlikely]]
      look_at(wave, inst);
  }

  // LDS instructions, while they run: `rows` are the VGPRs to be written or stored.
  void lds_read(const Wave& wave, LdsAccess use, const uint32_t* rows);
  void lds_write(const Wave& wave, LdsAccess use, const StoreData& data);
  // `rows` receives the old value; null when the instruction returns none. An exchange `replaces`
  // it, other updates depend on it.
  void lds_atomic(const Wave& wave, LdsAccess use, const uint32_t* rows, bool replaces);
  // ds_swizzle and ds_permute: lane i of `row` comes from lane source_lane[i] of `data`; kLanes: is
  // 0.
  void exchanged(const Wave& wave, const uint32_t* row, const uint32_t* data,
                 const uint8_t* source_lane);

  // Memory instructions, once their addresses are known to be good.
  void smem_read(const Wave& wave, uint64_t address, uint32_t bytes);
  void vmem_read(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                 const uint32_t* rows, bool glc);
  void vmem_write(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                  const StoreData& data);
  void vmem_atomic(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                   const uint32_t* rows);

 private:
  // Not 0 when the instruction names a register that is undefined or waits for a load, or may write
  // one for the first time.
  uint64_t unclean(const QuickUse& use, uint64_t exec) const {
    const auto& ready = registers_.ready;
    const uint64_t sources =
        ready[use.source[0]] & ready[use.source[1]] & ready[use.source[2]] & ready[use.source[3]];
    const uint64_t fresh = static_cast<uint64_t>(ready[use.destination[0]] == 0) |
                           static_cast<uint64_t>(ready[use.destination[1]] == 0);
    return (registers_.any_dirty & use.scalars) | (exec & ~sources) | fresh;
  }
  void finish(const Inst& inst, const QuickUse& use, uint64_t exec) {
    history_.push(&inst);
    for (const uint8_t row : use.destination)
      registers_.set_ready(row, registers_.ready[row] | exec);
  }
  void look_at(Wave& wave, const Inst& inst);
  bool enter_segment(const Wave& wave, const Inst& inst);
  bool trust(uint32_t segment, const Inst& first);
  void end_segment();
  // Before its end, after `last`, because something has become undefined.
  void leave_segment(const Inst& last);
  void examine(Wave& wave, const Inst& inst);
  void examine_operands(Wave& wave, const Inst& inst, const RegisterUse& use);
  void require_loaded(const Wave& wave, const Inst& inst, const RegisterUse& use) const;
  void require_loaded_rows(const Wave& wave, const Operand& o, const char* verb) const;
  [[noreturn]] void refuse_early(const Wave& wave, Where where, uint16_t index,
                                 const char* verb) const;
  void start_memory(const Wave& wave, const Inst& inst, const RegisterUse& use);
  void start_smem(const Inst& inst);
  void start_vmem(const Wave& wave, const Inst& inst, const RegisterUse& use);
  void require_store_data(const Wave& wave, const Inst& inst, const RegisterUse& use) const;
  void touch_global(const LanePointers& pointers, uint32_t bytes, GlobalShadow::Use use,
                    const StoreData& data = {});
  void mark_undefined(const Wave& wave, uint16_t row, uint64_t lanes, const Origin& origin);
  uint16_t row_of(const Wave& wave, const uint32_t* rows) const {
    return static_cast<uint16_t>((rows - wave.vgpr) / kLanes);
  }

  // The segment that is running: instructions below `trusted_end_` need no look.
  const Inst* trusted_end_ = nullptr;
  const Segment* trusted_ = nullptr;
  const Program* program_ = nullptr;
  const Inst* insts_ = nullptr;
  const QuickUse* quick_ = nullptr;
  GroupChecks* group_ = nullptr;
  RegisterState registers_;
  IssueHistory history_;
  PendingLoads pending_;
  // ds_swizzle and ds_permute: lanes whose lane number is undefined and those whose data is
  // defined, kept because the result may replace either register.
  uint64_t exchange_undefined_ = 0, exchange_data_ = 0;
  Origin exchange_origin_;
};

}  // namespace fasim
