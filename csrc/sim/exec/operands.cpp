#include "exec/operands.h"

#include <algorithm>
#include <cstring>

#include "exec/gpr_index.h"
#include "exec/lanes.h"
#include "exec/modifiers.h"
#include "isa/opcodes.h"

namespace fasim {
namespace {

constexpr uint64_t kAllLanes = ~0ull;
constexpr int kRowSources = 3;

void broadcast(uint32_t value, uint32_t* row) {
  for (int p = 0; p < kPasses; ++p) store_vector(row + p * kPassLanes, u32x16(value));
}

// `buffer` receives a scalar operand's lanes.
const uint32_t* source_row(Wave& wave, Operand o, uint32_t* buffer) {
  if (o.where == Where::vgpr) return wave.row(o.index);
  if (o.where == Where::constant) return wave.constants[o.index].lanes.data();
  if (o.where == Where::sgpr) {
    broadcast(wave.sgpr[o.index], buffer);
    if (o.dwords > 1) broadcast(wave.sgpr[o.index + 1], buffer + kRowWords);
    return buffer;
  }
  broadcast(read_scalar32(wave, o), buffer);
  return buffer;
}

void blend(uint32_t* dst, const uint32_t* fresh, uint64_t lanes, int rows) {
  for (int r = 0; r < rows; ++r, dst += kRowWords, fresh += kRowWords) {
    for (int p = 0; p < kPasses; ++p) {
      const i32x16 write = lanes_of(static_cast<uint16_t>(lanes >> (p * kPassLanes)));
      const u32x16 old = load_vector<u32x16>(dst + p * kPassLanes);
      const u32x16 value = load_vector<u32x16>(fresh + p * kPassLanes);
      store_vector(dst + p * kPassLanes, write ? value : old);
    }
  }
}

void write_mask(Wave& wave, const Inst& inst, uint64_t lanes) {
  if (inst.mask_dst.where == Where::none) return;
  wave.write64(inst.mask_dst.index, lanes);
  if (inst.row->has(OpcodeRow::kWritesExec)) wave.write64(kExec, lanes);
}

struct alignas(64) Scratch {
  uint32_t rows[kRowSources][2 * kRowWords];
  uint32_t modified[kRowSources][2 * kRowWords];
  uint32_t result[2 * kRowWords];
};

// Lanes that a DPP instruction writes: those enabled by its masks whose source lane exists and is
// active, or all enabled ones when bound_ctrl supplies 0 for the others.
uint64_t dpp_lanes(const Modifiers& mods, uint64_t exec) {
  if (mods.bound_ctrl_zero) return mods.dpp_write_mask;
  uint64_t readable = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    readable |= (exec >> mods.dpp_lane[lane] & 1) << lane;
  }
  return mods.dpp_write_mask & mods.dpp_in_range & readable;
}

// Any modifier, a special MODE, or lanes switched off.
[[gnu::noinline]] void run_general(Wave& wave, const Inst& inst, uint64_t exec) {
  const OpcodeRow& opcode = *inst.row;
  const Modifiers& mods = wave.modifiers[inst.modifiers];
  const bool modified = inst.modifiers != 0 || wave.special_mode;
  Scratch scratch;
  LaneArgs args;
  for (int i = 0; i < kRowSources; ++i) {
    if (inst.src[i].where == Where::none) continue;
    args.src[i] = source_row(wave, inst.src[i], scratch.rows[i]);
    if (modified) {
      args.src[i] = modify_source(wave, inst, mods, i, args.src[i], scratch.modified[i]);
    }
  }
  if (inst.src[kMaskSlot].where != Where::none)
    args.mask_in = read_scalar64(wave, inst.src[kMaskSlot]);
  args.saturate = mods.clamp;
  args.dst = scratch.result;
  inst.lanes(args);

  uint64_t lanes = exec;
  if (mods.dpp) lanes &= dpp_lanes(mods, exec);
  if (inst.dst.where == Where::vgpr) {
    uint32_t* dst = wave.row(inst.dst.index);
    if (modified) {
      modify_result(wave, opcode, mods, scratch.result);
      merge_result(opcode.dst, mods, dst, scratch.result);
    }
    blend(dst, scratch.result, lanes, dwords_of(opcode.dst));
  }
  write_mask(wave, inst, args.mask_out & lanes);
}

}  // namespace

void run_valu(Wave& wave, const Inst& inst) {
  const uint64_t exec = wave.exec();
  if (exec != kAllLanes || inst.modifiers != 0 || wave.special_mode) [[unlikely]] {
    // With no lane active only a mask result is visible, and it is 0.
    if (exec == 0) return write_mask(wave, inst, 0);
    if (wave.indexed_vgprs) return run_general(wave, index_vgprs(wave, inst), exec);
    return run_general(wave, inst, exec);
  }
  LaneArgs args;
  args.dst = wave.row(inst.dst.index);
  if (inst.vgprs_only) [[likely]] {
    for (int i = 0; i < kRowSources; ++i) args.src[i] = wave.row(inst.src[i].index);
    return inst.lanes(args);
  }
  alignas(64) uint32_t buffers[kRowSources][2 * kRowWords];
  for (int i = 0; i < kRowSources; ++i) {
    if (inst.src[i].where != Where::none) args.src[i] = source_row(wave, inst.src[i], buffers[i]);
  }
  if (inst.src[kMaskSlot].where != Where::none)
    args.mask_in = read_scalar64(wave, inst.src[kMaskSlot]);
  inst.lanes(args);
  write_mask(wave, inst, args.mask_out);
}

}  // namespace fasim
