#include "exec/lds.h"

#include <algorithm>

#include "check/fault.h"
#include "check/text.h"
#include "check/wave_checks.h"
#include "exec/lane_access.h"
#include "exec/lanes.h"
#include "exec/operands.h"
#include "exec/rows.h"

namespace fasim {
namespace {

[[noreturn]] void refuse_lds(const Wave& wave, uint32_t lane, uint64_t address, uint32_t bytes,
                             uint32_t alignment) {
  const auto at = static_cast<unsigned long long>(address);
  if (address % alignment) {
    throw SimFault(text("%u-byte LDS access at %#llx is not %u-byte aligned", bytes, at, alignment),
                   static_cast<int>(lane), address);
  }
  throw SimFault(text("%u-byte LDS access at %#llx is outside the workgroup's %u bytes", bytes, at,
                      wave.lds_bytes),
                 static_cast<int>(lane), address);
}

}  // namespace

void check_lds(const Wave& wave, const uint32_t* addresses, uint64_t lanes, uint32_t offset,
               uint32_t bytes, uint32_t alignment) {
  u32x16 highest = 0, low_bits = 0;
  for (int p = 0; p < kPasses; ++p) {
    // The sum wraps at 32 bits: clang pairs negative addresses with offsets.
    u32x16 address = load_vector<u32x16>(addresses + p * kPassLanes) + offset;
    const auto active = static_cast<uint16_t>(lanes >> (p * kPassLanes));
    if (active != 0xffff) address = lanes_of(active) ? address : u32x16(0);
    highest = __builtin_elementwise_max(highest, address);
    low_bits |= address;
  }
  const uint64_t end = static_cast<uint64_t>(__builtin_reduce_max(highest)) + bytes;
  const uint32_t misaligned = __builtin_reduce_or(low_bits) & (alignment - 1);
  if (end <= wave.lds_bytes && !misaligned) [[likely]]
    return;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    const uint64_t address = addresses[lane] + offset;
    if (address % alignment || address + bytes > wave.lds_bytes) {
      refuse_lds(wave, lane, address, bytes, alignment);
    }
  }
}

namespace {

// b64 needs 8 bytes, b96 and b128 need 16.
template <int kDwords>
constexpr uint32_t kAlignment = kDwords >= 3 ? 16 : 4 * kDwords;

template <int kDwords>
void read_at(Wave& wave, const uint32_t* addresses, uint32_t offset, uint32_t* rows) {
  const uint64_t exec = wave.exec();
  check_lds(wave, addresses, exec, offset, 4 * kDwords, kAlignment<kDwords>);
  const uint64_t distinct = exec == kAllLanes ? distinct_lanes(addresses) : exec;
  if (wave.checks) wave.checks->lds_read(wave, {addresses, offset, distinct, 4 * kDwords}, rows);
  const uint8_t* base = wave.lds;
  if (exec == kAllLanes) {
    gather_shared<kDwords>(distinct, rows,
                           [&](uint32_t lane) { return base + (addresses[lane] + offset); });
    return;
  }
  for_each_lane(exec, [&](uint32_t lane) {
    uint32_t dwords[kDwords];
    std::memcpy(dwords, base + (addresses[lane] + offset), sizeof dwords);
    for (int d = 0; d < kDwords; ++d) rows[d * kLanes + lane] = dwords[d];
  });
}
template <int kDwords>
void write_at(Wave& wave, const uint32_t* addresses, uint32_t offset, const uint32_t* rows) {
  const uint64_t exec = wave.exec();
  check_lds(wave, addresses, exec, offset, 4 * kDwords, kAlignment<kDwords>);
  if (wave.checks) wave.checks->lds_write(wave, {addresses, offset, exec, 4 * kDwords}, {rows});
  uint8_t* base = wave.lds;
  if (exec == kAllLanes) {
    scatter_rows<kDwords>(rows, [&](uint32_t lane) { return base + (addresses[lane] + offset); });
    return;
  }
  for_each_lane(exec, [&](uint32_t lane) {
    uint32_t dwords[kDwords];
    for (int d = 0; d < kDwords; ++d) dwords[d] = rows[d * kLanes + lane];
    std::memcpy(base + (addresses[lane] + offset), dwords, sizeof dwords);
  });
}

uint32_t offset_of(const Inst& inst) { return static_cast<uint32_t>(inst.memory.offset); }

template <int kDwords>
void run_read(Wave& wave, const Inst& inst) {
  read_at<kDwords>(wave, wave.row(inst.src[0].index), offset_of(inst), wave.row(inst.dst.index));
}
template <int kDwords>
void run_write(Wave& wave, const Inst& inst) {
  write_at<kDwords>(wave, wave.row(inst.src[0].index), offset_of(inst),
                    wave.row(inst.src[1].index));
}
// Two accesses; the offsets count elements, or 64 elements in the st64 forms.
template <int kDwords, uint32_t kStride>
void run_read2(Wave& wave, const Inst& inst) {
  constexpr uint32_t kUnit = 4 * kDwords * kStride;
  // The first half of the result may replace the address register.
  alignas(64) uint32_t addresses[kLanes];
  std::copy_n(wave.row(inst.src[0].index), kLanes, addresses);
  uint32_t* rows = wave.row(inst.dst.index);
  read_at<kDwords>(wave, addresses, offset_of(inst) * kUnit, rows);
  read_at<kDwords>(wave, addresses, inst.memory.offset1 * kUnit, rows + kDwords * kLanes);
}
template <int kDwords, uint32_t kStride>
void run_write2(Wave& wave, const Inst& inst) {
  constexpr uint32_t kUnit = 4 * kDwords * kStride;
  const uint32_t* addresses = wave.row(inst.src[0].index);
  write_at<kDwords>(wave, addresses, offset_of(inst) * kUnit, wave.row(inst.src[1].index));
  write_at<kDwords>(wave, addresses, inst.memory.offset1 * kUnit, wave.row(inst.src[2].index));
}

// Bytes and shorts; `Fn` makes the register value from the memory value. The d16 forms clear the
// other half, as a card with SRAM ECC does.
template <class T, class Fn>
void run_read_small(Wave& wave, const Inst& inst) {
  const uint32_t* addresses = wave.row(inst.src[0].index);
  check_lds(wave, addresses, wave.exec(), offset_of(inst), sizeof(T), sizeof(T));
  uint32_t* row = wave.row(inst.dst.index);
  if (wave.checks) {
    wave.checks->lds_read(wave, {addresses, offset_of(inst), wave.exec(), sizeof(T)}, row);
  }
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    T value;
    std::memcpy(&value, wave.lds + (addresses[lane] + offset_of(inst)), sizeof value);
    row[lane] = Fn{}(value);
  });
}
template <class T, int kShift>
void run_write_small(Wave& wave, const Inst& inst) {
  const uint32_t* addresses = wave.row(inst.src[0].index);
  check_lds(wave, addresses, wave.exec(), offset_of(inst), sizeof(T), sizeof(T));
  const uint32_t* row = wave.row(inst.src[1].index);
  if (wave.checks) {
    wave.checks->lds_write(wave, {addresses, offset_of(inst), wave.exec(), sizeof(T)},
                           {row, kShift});
  }
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    const T value = static_cast<T>(row[lane] >> kShift);
    std::memcpy(wave.lds + (addresses[lane] + offset_of(inst)), &value, sizeof value);
  });
}

// Source lane of `lane` under a swizzle pattern, within groups of 32 (or 4 for quad permutations).
uint32_t swizzle_lane(uint32_t pattern, uint32_t lane) {
  if (pattern & 0x8000) return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
  const uint32_t in_group = ((lane & pattern) | (pattern >> 5)) ^ (pattern >> 10);
  return (lane & 32) | (in_group & 31);
}

// Lane i receives lane from[i]; kLanes and above: 0.
void exchange(Wave& wave, const uint32_t* data, uint32_t* row, const uint8_t* from) {
  if (wave.checks) wave.checks->exchanged(wave, row, data, from);
  alignas(64) uint32_t result[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    result[lane] = from[lane] < kLanes ? data[from[lane]] : 0;
  for_each_lane(wave.exec(), [&](uint32_t lane) { row[lane] = result[lane]; });
}
// `source_lane(lane)` chooses; an inactive source lane gives 0.
template <class Fn>
void pull(Wave& wave, const uint32_t* data, uint32_t* row, Fn source_lane) {
  uint8_t from[kLanes];
  const uint64_t exec = wave.exec();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t source = source_lane(lane);
    from[lane] = static_cast<uint8_t>(exec >> source & 1 ? source : kLanes);
  }
  exchange(wave, data, row, from);
}
void run_swizzle(Wave& wave, const Inst& inst) {
  const uint32_t pattern = offset_of(inst);
  // 0xc000 and above are the rotate and FFT modes of later cards.
  if (pattern >= 0xc000)
    throw SimFault(text("ds_swizzle_b32 pattern %#x is not simulated", pattern));
  pull(wave, wave.row(inst.src[0].index), wave.row(inst.dst.index),
       [&](uint32_t lane) { return swizzle_lane(pattern, lane); });
}
void run_bpermute(Wave& wave, const Inst& inst) {
  const uint32_t* addresses = wave.row(inst.src[0].index);
  pull(wave, wave.row(inst.src[1].index), wave.row(inst.dst.index),
       [&](uint32_t lane) { return (addresses[lane] + offset_of(inst)) / 4 % kLanes; });
}
// Lanes push; the highest lane wins, and a lane that receives nothing gets 0.
void run_permute(Wave& wave, const Inst& inst) {
  const uint32_t *addresses = wave.row(inst.src[0].index), *data = wave.row(inst.src[1].index);
  uint8_t from[kLanes];
  std::fill_n(from, kLanes, static_cast<uint8_t>(kLanes));
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    from[(addresses[lane] + offset_of(inst)) / 4 % kLanes] = static_cast<uint8_t>(lane);
  });
  exchange(wave, data, wave.row(inst.dst.index), from);
}

constexpr OpcodeRow read_row(std::string_view name, RunFunction run, Kind dst = Kind::b32) {
  return {.name = name, .run = run, .cls = InstClass::lds, .dst = dst, .src = {Kind::b32}};
}
constexpr OpcodeRow write_row(std::string_view name, RunFunction run, Kind data = Kind::b32) {
  return {.name = name, .run = run, .cls = InstClass::lds, .src = {Kind::b32, data}};
}
constexpr OpcodeRow write2_row(std::string_view name, RunFunction run, Kind data) {
  return {.name = name, .run = run, .cls = InstClass::lds, .src = {Kind::b32, data, data}};
}
constexpr OpcodeRow lane_row(std::string_view name, RunFunction run) {
  return {.name = name,
          .run = run,
          .cls = InstClass::lds,
          .dst = Kind::b32,
          .src = {Kind::b32, Kind::b32}};
}
template <class T, class Fn>
constexpr OpcodeRow read_small(std::string_view name, Fn) {
  return read_row(name, &run_read_small<T, Fn>);
}

constexpr OpcodeRow kRows[] = {
    read_row("ds_read_b32", &run_read<1>),
    read_row("ds_read_b64", &run_read<2>, Kind::b64),
    read_row("ds_read_b96", &run_read<3>, Kind::b96),
    read_row("ds_read_b128", &run_read<4>, Kind::b128),
    read_row("ds_read2_b32", &run_read2<1, 1>, Kind::b64),
    read_row("ds_read2_b64", &run_read2<2, 1>, Kind::b128),
    read_row("ds_read2st64_b32", &run_read2<1, 64>, Kind::b64),
    read_row("ds_read2st64_b64", &run_read2<2, 64>, Kind::b128),
    write_row("ds_write_b32", &run_write<1>),
    write_row("ds_write_b64", &run_write<2>, Kind::b64),
    write_row("ds_write_b96", &run_write<3>, Kind::b96),
    write_row("ds_write_b128", &run_write<4>, Kind::b128),
    write2_row("ds_write2_b32", &run_write2<1, 1>, Kind::b32),
    write2_row("ds_write2_b64", &run_write2<2, 1>, Kind::b64),
    write2_row("ds_write2st64_b32", &run_write2<1, 64>, Kind::b32),
    write2_row("ds_write2st64_b64", &run_write2<2, 64>, Kind::b64),
    read_small<uint8_t>("ds_read_u8", [](uint32_t v) { return v; }),
    read_small<int8_t>("ds_read_i8", [](int32_t v) { return static_cast<uint32_t>(v); }),
    read_small<uint16_t>("ds_read_u16", [](uint32_t v) { return v; }),
    read_small<int16_t>("ds_read_i16", [](int32_t v) { return static_cast<uint32_t>(v); }),
    read_small<uint8_t>("ds_read_u8_d16", [](uint32_t v) { return v; }),
    read_small<uint8_t>("ds_read_u8_d16_hi", [](uint32_t v) { return v << 16; }),
    read_small<int8_t>("ds_read_i8_d16",
                       [](int32_t v) { return static_cast<uint32_t>(v) & 0xffff; }),
    read_small<int8_t>("ds_read_i8_d16_hi",
                       [](int32_t v) { return static_cast<uint32_t>(v) << 16; }),
    read_small<uint16_t>("ds_read_u16_d16", [](uint32_t v) { return v; }),
    read_small<uint16_t>("ds_read_u16_d16_hi", [](uint32_t v) { return v << 16; }),
    write_row("ds_write_b8", &run_write_small<uint8_t, 0>),
    write_row("ds_write_b8_d16_hi", &run_write_small<uint8_t, 16>),
    write_row("ds_write_b16", &run_write_small<uint16_t, 0>),
    write_row("ds_write_b16_d16_hi", &run_write_small<uint16_t, 16>),
    read_row("ds_swizzle_b32", &run_swizzle),
    lane_row("ds_bpermute_b32", &run_bpermute),
    lane_row("ds_permute_b32", &run_permute),
};

}  // namespace

Rows lds_rows() { return kRows; }

}  // namespace fasim
