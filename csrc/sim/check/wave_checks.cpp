#include "check/wave_checks.h"

#include <cinttypes>

#include "check/definedness.h"
#include "check/fault.h"
#include "check/text.h"
#include "exec/buffer_resource.h"
#include "exec/gpr_index.h"
#include "exec/lane_access.h"
#include "exec/operands.h"
#include "isa/opcodes.h"

namespace fasim {

void WaveChecks::reset(const Wave& wave, GroupChecks& group) {
  program_ = wave.program;
  trusted_end_ = nullptr;
  insts_ = wave.program->insts.data();
  quick_ = wave.program->quick_uses.data();
  group_ = &group;
  registers_.reset(wave.initial_sgprs, wave.initial_vgprs, wave.exec(), *wave.program);
  history_.reset();
  pending_.reset();
}

bool WaveChecks::enter_segment(const Wave& wave, const Inst& inst) {
  const SegmentStart& start = program_->segment_at[static_cast<size_t>(&inst - insts_)];
  if (wave.indexed_vgprs) return false;
  return (start.with_lds && pending_.at_rest(Counter::lgkm) && trust(start.with_lds, inst)) ||
         (start.plain && trust(start.plain, inst));
}

bool WaveChecks::trust(uint32_t number, const Inst& first) {
  const Segment& segment = program_->segments[number];
  uint64_t unclean = segment.scalars & registers_.any_dirty;
  for (size_t i = 0; i < segment.rows.size(); ++i) unclean |= segment.rows[i] & ~registers_.full[i];
  if (unclean) return false;
  trusted_ = &segment;
  trusted_end_ = &first + segment.length;
  return true;
}

void WaveChecks::end_segment() {
  if (!trusted_end_) return;
  for (const uint32_t load : trusted_->loads)
    pending_.issue(Counter::lgkm, {insts_ + load, insts_[load].dst, true}, kAllLanes, registers_);
  history_.push_run(trusted_end_ - 1, trusted_->length);
  trusted_end_ = nullptr;
}

void WaveChecks::leave_segment(const Inst& last) {
  if (!trusted_end_) return;
  const Inst* const first = trusted_end_ - trusted_->length;
  for (const Inst* inst = first; inst <= &last; ++inst) {
    if (inst->cls == InstClass::lds)
      pending_.issue(Counter::lgkm, {inst, inst->dst, true}, kAllLanes, registers_);
    if (program_->uses[static_cast<size_t>(inst - insts_)].kind == RegisterUse::Kind::wait)
      pending_.wait(Counter::lgkm, inst->wait.lgkm, registers_);
  }
  history_.push_run(&last, static_cast<size_t>(&last - first) + 1);
  trusted_end_ = nullptr;
}

void WaveChecks::look_at(Wave& wave, const Inst& inst) {
  end_segment();
  if (enter_segment(wave, inst)) return;
  const QuickUse& use = quick_[&inst - insts_];
  const uint64_t exec = wave.exec();
  if (unclean(use, exec) | use.special | wave.indexed_vgprs) return examine(wave, inst);
  finish(inst, use, exec);
}

void WaveChecks::examine(Wave& wave, const Inst& inst) {
  const RegisterUse& use = wave.program->uses[&inst - insts_];
  if (use.kind == RegisterUse::Kind::wait) {
    history_.push(&inst);
    pending_.wait(Counter::vm, inst.wait.vm, registers_);
    pending_.wait(Counter::lgkm, inst.wait.lgkm, registers_);
    return;
  }
  if (use.has(RegisterUse::kConsumesHazard)) check_hazards(inst, history_, *wave.program);
  const QuickUse& quick = quick_[&inst - insts_];
  const bool clean = quick.complete && !wave.indexed_vgprs && !unclean(quick, wave.exec());
  if (clean && use.kind == RegisterUse::Kind::plain) return finish(inst, quick, wave.exec());
  history_.push(&inst);
  if (clean && use.kind == RegisterUse::Kind::lds &&
      (inst.dst.where == Where::none || !registers_.loads_into(inst.dst))) {
    return pending_.issue(Counter::lgkm, {&inst, inst.dst, true}, wave.exec(), registers_);
  }
  if (wave.indexed_vgprs && inst.lanes && wave.exec()) {
    const Inst indexed = index_vgprs(wave, inst);
    return examine_operands(wave, indexed, use);
  }
  examine_operands(wave, inst, use);
}

void WaveChecks::examine_operands(Wave& wave, const Inst& inst, const RegisterUse& use) {
  require_loaded(wave, inst, use);
  switch (use.kind) {
    case RegisterUse::Kind::plain:
    case RegisterUse::Kind::involved:
      if (inst.cls == InstClass::valu)
        spread_through_lanes(wave, inst, use, registers_);
      else
        spread_through_scalars(wave, inst, use, registers_);
      break;
    case RegisterUse::Kind::lane_move:
      spread_through_lane_move(wave, inst, registers_);
      break;
    case RegisterUse::Kind::nop:
      break;
    case RegisterUse::Kind::acquire:
      group_->group.acquired = true;
      break;
    default:
      start_memory(wave, inst, use);
  }
}

void WaveChecks::refuse_early(const Wave& wave, Where where, uint16_t index,
                              const char* verb) const {
  const PendingLoads::Needed needed = pending_.needed_for(where, index);
  const std::string name = where == Where::vgpr ? text("v%u", index) : scalar_name(index);
  throw SimFault(text("%s is %s while %s (pc %#" PRIx64 ") still loads it; expected %s in between",
                      name.c_str(), verb, wave.program->text_of(*needed.inst).c_str(),
                      wave.program->address_of(*needed.inst), needed.wait.c_str()));
}

void WaveChecks::require_loaded_rows(const Wave& wave, const Operand& o, const char* verb) const {
  for (uint16_t i = 0; o.where == Where::vgpr && i < o.dwords; ++i) {
    const auto row = static_cast<uint16_t>(o.index + i);
    if (registers_.loading[row]) refuse_early(wave, Where::vgpr, row, verb);
  }
}

void WaveChecks::require_loaded(const Wave& wave, const Inst& inst, const RegisterUse& use) const {
  for (const Operand& o : inst.src) require_loaded_rows(wave, o, "read");
  const bool in_order = use.kind == RegisterUse::Kind::vmem || use.kind == RegisterUse::Kind::lds;
  const Counter counter = use.kind == RegisterUse::Kind::vmem ? Counter::vm : Counter::lgkm;
  for (uint16_t i = 0; inst.dst.where == Where::vgpr && i < inst.dst.dwords; ++i) {
    const auto row = static_cast<uint16_t>(inst.dst.index + i);
    if (!registers_.loading[row]) continue;
    if (in_order && pending_.may_follow(counter, row, registers_)) continue;
    refuse_early(wave, Where::vgpr, row, "overwritten");
  }
  for (uint16_t half = 0; half < 2; ++half) {
    const uint64_t loading = registers_.loading_scalars[half] & use.scalars[half];
    if (!loading) continue;
    const auto number = static_cast<uint16_t>(half * 64 + __builtin_ctzll(loading));
    auto holds = [&](const Operand& o) {
      return o.where == Where::sgpr && number >= o.index && number < o.index + o.dwords;
    };
    const bool written = holds(inst.dst) || holds(inst.mask_dst);
    bool read = false;
    for (const Operand& o : inst.src) read = read || holds(o);
    refuse_early(wave, Where::sgpr, number, written && !read ? "overwritten" : "read");
  }
}

namespace {

constexpr const char* kAddress = "an address";

}  // namespace

// Data may be undefined on its way to scratch, where spills put anything, and to LDS, which keeps
// track of it.
void WaveChecks::require_store_data(const Wave& wave, const Inst& inst,
                                    const RegisterUse& use) const {
  const bool buffer = use.has(RegisterUse::kBuffer);
  uint64_t lanes = wave.exec();
  if (buffer) {
    if (BufferResource(wave, inst.src[2].index).swizzled) return;
  } else if (use.has(RegisterUse::kFlat)) {
    const uint32_t* high = wave.vgpr + (inst.src[0].index + 1) * kLanes;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if (high[lane] == kSharedAperture || high[lane] == kPrivateAperture) lanes &= ~(1ull << lane);
    }
  }
  require_defined_lanes(inst.src[buffer ? 0 : 1], lanes, "data stored to global memory",
                        registers_);
}

void WaveChecks::start_memory(const Wave& wave, const Inst& inst, const RegisterUse& use) {
  switch (use.kind) {
    case RegisterUse::Kind::smem:
      return start_smem(inst);
    case RegisterUse::Kind::vmem:
      return start_vmem(wave, inst, use);
    case RegisterUse::Kind::lds_exchange: {
      const bool numbered = inst.src[1].where != Where::none;
      exchange_undefined_ = numbered ? wave.exec() & ~registers_.ready[inst.src[0].index] : 0;
      exchange_origin_ = registers_.origin_of_vgpr(inst.src[0].index);
      exchange_data_ = registers_.lanes(inst.src[numbered].index);
      break;
    }
    default:
      require_defined_lanes(inst.src[0], wave.exec(), kAddress, registers_);
      if (use.touches(kM0)) require_defined_scalar({Where::sgpr, 1, kM0}, kAddress, registers_);
  }
  pending_.issue(Counter::lgkm, {&inst, inst.dst, true}, wave.exec(), registers_);
}

void WaveChecks::start_smem(const Inst& inst) {
  for (const Operand& o : inst.src) require_defined_scalar(o, kAddress, registers_);
  for (uint16_t i = 0; i < inst.dst.dwords; ++i)
    registers_.set_undefined(static_cast<uint16_t>(inst.dst.index + i), 0, Origin());
  pending_.issue(Counter::lgkm, {&inst, inst.dst, false}, 0, registers_);
}

void WaveChecks::start_vmem(const Wave& wave, const Inst& inst, const RegisterUse& use) {
  const uint64_t exec = wave.exec();
  const bool buffer = use.has(RegisterUse::kBuffer), flat = use.has(RegisterUse::kFlat);
  const bool atomic = use.has(RegisterUse::kAtomic);
  const bool stores = atomic || use.has(RegisterUse::kStore);
  const size_t data = buffer ? 0 : 1;
  for (size_t i = 0; i < inst.src.size(); ++i) {
    if (!(stores && i == data)) require_defined_lanes(inst.src[i], exec, kAddress, registers_);
  }
  if (stores) require_store_data(wave, inst, use);
  // MUBUF atomics return into their data operand.
  const Operand dst = buffer && atomic && inst.memory.glc ? inst.src[0] : inst.dst;
  pending_.issue(Counter::vm, {&inst, dst, !flat}, exec, registers_);
  if (flat) pending_.issue(Counter::lgkm, {&inst, dst, false}, exec, registers_);
}

}  // namespace fasim
