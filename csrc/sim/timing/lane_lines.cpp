#include "timing/lane_lines.h"

#include <algorithm>
#include <bit>

#include "exec/buffer_resource.h"
#include "exec/lane_access.h"
#include "exec/operands.h"

namespace fasim {
namespace {

void add_line(LaneLines& lines, uint64_t line, uint32_t bytes) {
  // Neighbouring lanes mostly share a line with the lane before.
  for (uint32_t i = lines.count; i-- > 0;) {
    if (lines.line[i] != line) continue;
    lines.bytes[i] += bytes;
    return;
  }
  lines.line[lines.count] = line;
  lines.bytes[lines.count++] = bytes;
}

// The lanes of a buffer instruction that reach memory, and their byte addresses. Scratch: lane
// after lane, as its swizzle lays them out.
uint64_t buffer_addresses(Wave& wave, const Inst& inst, const InstTiming& timing,
                          std::array<uint64_t, kLanes>& address) {
  const bool data_first = timing.is_store || timing.is_atomic;
  const BufferResource v(wave, inst.src[data_first ? 2 : 1].index);
  if (v.swizzled) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      address[lane] =
          wave.scratch + static_cast<uint64_t>(inst.memory.offset) * kLanes + lane * timing.bytes;
    }
    return wave.exec();
  }
  const uint32_t* row = wave.row(inst.src[data_first ? 1 : 0].index);
  const uint32_t* index_row = inst.memory.idxen ? row : nullptr;
  const uint32_t* offset_row = inst.memory.offen ? row + (index_row ? kLanes : 0) : nullptr;
  const uint32_t soffset = read_scalar32(wave, inst.src[data_first ? 3 : 2]);
  uint64_t lanes = 0;
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    const uint64_t index = index_row ? index_row[lane] : 0;
    const uint64_t offset =
        (offset_row ? offset_row[lane] : 0) + static_cast<uint64_t>(inst.memory.offset);
    const bool inside = v.stride ? index < v.records : offset + soffset < v.records;
    if (inside) lanes |= 1ull << lane;
    address[lane] = v.base + soffset + index * v.stride + offset;
  });
  return lanes;
}

// The lanes that reach memory, and their byte addresses.
uint64_t addresses_of(Wave& wave, const Inst& inst, const InstTiming& timing,
                      std::array<uint64_t, kLanes>& address) {
  if (timing.is_buffer) return buffer_addresses(wave, inst, timing, address);
  const bool store = timing.is_store || timing.is_atomic;
  const Operand vector = inst.src[0];
  const Operand base = inst.src[store ? 2 : 1];
  const bool scalar_base = base.where == Where::sgpr;
  const uint32_t* row = wave.row(vector.index);
  const uint64_t constant = static_cast<uint64_t>(static_cast<int64_t>(inst.memory.offset)) +
                            (scalar_base ? wave.read64(base.index) : 0);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    address[lane] = constant + (scalar_base ? row[lane] : read_lane<uint64_t>(row, lane));
  }
  return wave.exec();
}

// Published for a Radeon VII (sebbbi/perftest): 4.7 clocks for a linear dword and 3.6 for a uniform
// one, 16 lanes a clock; 8 for a uniform x4; what is wider or scattered goes 4 lanes a clock, and
// scattered 12-byte elements at half of that. Stores and atomics as CLRX lists them.
uint32_t address_clocks(const LaneLines& lines, const InstTiming& timing, uint32_t line_bytes) {
  if (timing.is_store || timing.is_atomic) return timing.bytes > 8 && timing.is_atomic ? 32 : 16;
  if (lines.count == 1) return timing.bytes > 4 ? 8 : 4;
  const uint64_t dense = (kLanes * 4) / line_bytes + 1;
  if (timing.bytes <= 4 && lines.count <= dense) return 5;
  return timing.bytes == 12 && lines.count > 13 ? 32 : 16;
}

bool same_pattern(const LdsMemo& memo, uint64_t exec, const uint32_t* address) {
  if (memo.exec != exec) return false;
  const uint32_t moved = address[0] - memo.address[0];
  uint32_t differs = moved % 4;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    differs |= (address[lane] - memo.address[lane]) ^ moved;
  }
  return differs == 0;
}

LdsCost banked_cost(const uint32_t* address, uint64_t exec, const Inst& inst,
                    const InstTiming& timing) {
  LdsAccess access;
  access.bytes = timing.bytes;
  access.exec = exec;
  access.op = timing.is_atomic ? LdsOp::atomic : timing.is_store ? LdsOp::write : LdsOp::read;
  const uint32_t accesses = timing.two_accesses ? 2 : 1;
  LdsCost cost;
  cost.port = lds_port_clocks(access.op, access.bytes * accesses);
  for (uint32_t n = 0; n < accesses; ++n) {
    const uint32_t offset =
        (n ? inst.memory.offset1 : static_cast<uint32_t>(inst.memory.offset)) * timing.unit;
    for (uint32_t lane = 0; lane < kLanes; ++lane) access.offset[lane] = address[lane] + offset;
    const uint32_t passes = bank_passes(access);
    cost.array += passes;
    cost.conflict += passes - conflict_free_passes(access);
  }
  return cost;
}

}  // namespace

LaneLines lane_lines(Wave& wave, const Inst& inst, const InstTiming& timing, uint32_t line_bytes,
                     DeviceAddresses& addresses) {
  LaneLines lines;
  std::array<uint64_t, kLanes> address;
  const uint64_t lanes = addresses_of(wave, inst, timing, address);
  for_each_lane(lanes, [&](uint32_t lane) {
    const uint64_t at = addresses(address[lane]);
    const uint64_t first = at / line_bytes;
    const uint64_t last = (at + timing.bytes - 1) / line_bytes;
    const auto in_first =
        static_cast<uint32_t>(std::min<uint64_t>(timing.bytes, (first + 1) * line_bytes - at));
    add_line(lines, first, in_first);
    if (last != first) add_line(lines, last, timing.bytes - in_first);
  });
  lines.address_clocks = address_clocks(lines, timing, line_bytes);
  return lines;
}

ScalarLines scalar_lines(const Wave& wave, const Inst& inst, const InstTiming& timing,
                         uint32_t line_bytes, DeviceAddresses& addresses) {
  if (timing.bytes == 0 || inst.src[0].where != Where::sgpr) return {};
  uint64_t offset = static_cast<uint64_t>(static_cast<int64_t>(inst.memory.offset));
  if (inst.src[1].where == Where::sgpr) offset += wave.sgpr[inst.src[1].index];
  if (inst.src[1].where == Where::constant) offset += wave.constants[inst.src[1].index].lanes[0];
  const uint64_t address = addresses((wave.read64(inst.src[0].index) & 0xffffffffffff) + offset);
  return {address / line_bytes, (address + timing.bytes - 1) / line_bytes + 1};
}

LdsCost lds_cost(Wave& wave, const Inst& inst, const InstTiming& timing, const CardTiming& card,
                 LdsMemo& memo) {
  if (timing.is_exchange) {
    // The exchange network has no banks; ds_swizzle_b32 sends no addresses.
    const uint32_t port = inst.src[1].where == Where::vgpr ? card.bpermute_port : 4;
    return {.port = port, .array = port / 2};
  }
  const uint32_t* address = wave.row(inst.src[0].index);
  const uint64_t exec = wave.exec();
  if (!same_pattern(memo, exec, address)) {
    memo.exec = exec;
    std::copy_n(address, kLanes, memo.address.begin());
    memo.cost = banked_cost(address, exec, inst, timing);
  }
  return memo.cost;
}

}  // namespace fasim
