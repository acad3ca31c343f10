#include "check/segments.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "check/fault.h"
#include "check/hazards.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr uint32_t kMinimum = 3;        // a shorter one saves nothing
constexpr uint32_t kMostLdsLoads = 15;  // lgkmcnt can hold

class SegmentFinder {
 public:
  explicit SegmentFinder(Program& program)
      : program_(program), is_target_(program.insts.size(), false) {
    program.segment_at.assign(program.insts.size(), SegmentStart());
    program.segments.assign(1, Segment());  // [0]: none
    for (const Inst& inst : program.insts) {
      if (inst.row->has(OpcodeRow::kBranch)) is_target_[static_cast<size_t>(inst.immediate)] = true;
    }
  }

  void run(bool with_lds) {
    with_lds_ = with_lds;
    for (uint32_t i = 0; i < program_.insts.size();) i = find_from(i);
  }

 private:
  // Returns where the next may begin.
  uint32_t find_from(uint32_t first) {
    segment_ = Segment();
    history_.reset();
    slots_ = 0;
    loads_.clear();
    // One with LDS ends early where none of its loads is on its way, so that the next can begin.
    auto at_rest = [&] { return segment_.counts_lgkm && loads_.empty(); };
    for (uint32_t i = first; i < program_.insts.size() && !at_rest(); ++i) {
      if ((i > first && is_target_[i]) || !belongs(i)) break;
      add(i);
    }
    if (segment_.length < kMinimum) return first + 1;
    if (segment_.counts_lgkm || !with_lds_) record(first);
    return first + segment_.length;
  }
  void record(uint32_t first) {
    SegmentStart& start = program_.segment_at[first];
    (with_lds_ ? start.with_lds : start.plain) = static_cast<uint32_t>(program_.segments.size());
    segment_.loads = loads_;
    program_.segments.push_back(segment_);
  }

  bool belongs(uint32_t i) const {
    const Inst& inst = program_.insts[i];
    const std::string_view name = inst.row->name;
    switch (program_.uses[i].kind) {
      case RegisterUse::Kind::plain:
      case RegisterUse::Kind::involved:
      case RegisterUse::Kind::lane_move:
      case RegisterUse::Kind::nop:
        break;
      case RegisterUse::Kind::lds:
        if (with_lds_) break;
        return false;
      case RegisterUse::Kind::wait:
        return with_lds_ && inst.wait.vm == WaitCounts().vm;
      default:
        return false;
    }
    if (inst.cls == InstClass::branch || name.starts_with("s_set") || name.starts_with("s_getreg"))
      return false;
    // s_barrier, s_endpgm and their kind change more than registers.
    if (inst.cls == InstClass::other && name != "s_nop") return false;
    auto awaited = [&](const Operand& o) { return awaits_lds(o); };
    if (awaited(inst.dst) || std::ranges::any_of(inst.src, awaited)) return false;
    return !program_.uses[i].has(RegisterUse::kConsumesHazard) || surely_far_enough(inst);
  }

  bool awaits_lds(const Operand& o) const {
    return o.where == Where::vgpr && std::ranges::any_of(loads_, [&](uint32_t load) {
             const Operand& rows = program_.insts[load].dst;
             return rows.where == Where::vgpr && o.index < rows.index + rows.dwords &&
                    rows.index < o.index + o.dwords;
           });
  }

  // Whatever ran before the segment is out of reach, and nothing in it is too close.
  bool surely_far_enough(const Inst& inst) const {
    if (slots_ < IssueHistory::kLongest) return false;
    try {
      check_hazards(inst, history_, program_);
    } catch (const SimFault&) {
      return false;
    }
    return true;
  }

  void add(uint32_t i) {
    const Inst& inst = program_.insts[i];
    ++segment_.length;
    auto add_rows = [&](const Operand& o) {
      for (size_t r = o.index; o.where == Where::vgpr && r < size_t{o.index} + o.dwords; ++r)
        segment_.rows[r / 64] |= 1ull << (r % 64);
    };
    add_rows(inst.dst);
    for (const Operand& o : inst.src) add_rows(o);
    segment_.scalars |= fold_scalars(program_.uses[i].scalars);
    history_.push(&inst);
    slots_ += IssueHistory::slots_of(inst);
    const bool lds = inst.cls == InstClass::lds;
    const bool waits = program_.uses[i].kind == RegisterUse::Kind::wait;
    segment_.counts_lgkm = segment_.counts_lgkm || lds || waits;
    if (lds) loads_.push_back(i);
    const size_t left = waits ? inst.wait.lgkm : kMostLdsLoads;
    if (loads_.size() > left) loads_.erase(loads_.begin(), loads_.end() - static_cast<long>(left));
  }

  Program& program_;
  std::vector<bool> is_target_;
  Segment segment_;  // all that was added
  IssueHistory history_;
  size_t slots_ = 0;
  std::vector<uint32_t> loads_;  // LDS instructions on their way, oldest first
  bool with_lds_ = false;
};

}  // namespace

void find_segments(Program& program) {
  SegmentFinder finder(program);
  finder.run(/*with_lds=*/false);
  finder.run(/*with_lds=*/true);
}

}  // namespace fasim
