// Vector loads and stores: GLOBAL, FLAT and MUBUF share everything but the addressing.

#include "check/wave_checks.h"
#include "exec/addressing.h"
#include "exec/lane_access.h"
#include "exec/rows.h"

namespace fasim {
namespace {

// Where the text puts addresses: MUBUF stores name the data first, the others last.
template <class Addressing>
constexpr bool kDataFirst = std::is_same_v<Addressing, BufferAddressing>;

template <class Addressing>
AccessShape load_shape(uint32_t bytes) {
  return {.bytes = bytes};
}
template <class Addressing>
AccessShape store_shape(uint32_t bytes) {
  return {.bytes = bytes,
          .access = Access::write,
          .first_source = kDataFirst<Addressing>,
          .saddr_source = 2};
}
template <class Addressing>
Operand store_data(const Inst& inst) {
  return inst.src[kDataFirst<Addressing> ? 0 : 1];
}

template <int kDwords>
void load_rows(const LanePointers& p, uint32_t* rows) {
  if (p.lanes == kAllLanes) {
    gather_rows<kDwords>(rows, [&](uint32_t lane) { return p[lane]; });
    return;
  }
  for_each_lane(p.lanes, [&](uint32_t lane) {
    uint32_t dwords[kDwords];
    std::memcpy(dwords, p[lane], sizeof dwords);
    for (int d = 0; d < kDwords; ++d) rows[d * kLanes + lane] = dwords[d];
  });
}
template <int kDwords>
void store_rows(const LanePointers& p, const uint32_t* rows) {
  if (p.lanes == kAllLanes) {
    scatter_rows<kDwords>(rows, [&](uint32_t lane) { return p[lane]; });
    return;
  }
  for_each_lane(p.lanes, [&](uint32_t lane) {
    uint32_t dwords[kDwords];
    for (int d = 0; d < kDwords; ++d) dwords[d] = rows[d * kLanes + lane];
    std::memcpy(p[lane], dwords, sizeof dwords);
  });
}

// A raw buffer is range-checked dword by dword: loads beyond it give 0, stores vanish.
template <class Addressing>
void load_apart(Wave& wave, const Inst& inst, int dwords, uint32_t* rows) {
  // The destination may hold the addresses, so nothing is written before the last dword is read.
  alignas(64) uint32_t fresh[4][kLanes] = {};
  for (int d = 0; d < dwords; ++d) {
    AccessShape shape = load_shape<Addressing>(4);
    shape.skip = 4 * static_cast<uint32_t>(d);
    LanePointers p;
    Addressing::resolve(wave, inst, shape, p);
    if (wave.checks)
      wave.checks->vmem_read(wave, p, 4, rows + d * static_cast<int>(kLanes), inst.memory.glc);
    load_rows<1>(p, fresh[d]);
  }
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    for (int d = 0; d < dwords; ++d)
      rows[d * static_cast<int>(kLanes) + static_cast<int>(lane)] = fresh[d][lane];
  });
}
template <class Addressing>
void store_apart(Wave& wave, const Inst& inst, int dwords, const uint32_t* rows) {
  for (int d = 0; d < dwords; ++d) {
    AccessShape shape = store_shape<Addressing>(4);
    shape.skip = 4 * static_cast<uint32_t>(d);
    LanePointers p;
    Addressing::resolve(wave, inst, shape, p);
    const uint32_t* row = rows + d * static_cast<int>(kLanes);
    if (wave.checks) wave.checks->vmem_write(wave, p, 4, {row});
    store_rows<1>(p, row);
  }
}

template <class Addressing, int kDwords>
void run_load(Wave& wave, const Inst& inst) {
  LanePointers p;
  Addressing::resolve(wave, inst, load_shape<Addressing>(4 * kDwords), p);
  uint32_t* rows = wave.row(inst.dst.index);
  if (p.out_of_range) return load_apart<Addressing>(wave, inst, kDwords, rows);
  if (wave.checks) wave.checks->vmem_read(wave, p, 4 * kDwords, rows, inst.memory.glc);
  load_rows<kDwords>(p, rows);
}
template <class Addressing, int kDwords>
void run_store(Wave& wave, const Inst& inst) {
  LanePointers p;
  Addressing::resolve(wave, inst, store_shape<Addressing>(4 * kDwords), p);
  const uint32_t* rows = wave.row(store_data<Addressing>(inst).index);
  if (p.out_of_range) return store_apart<Addressing>(wave, inst, kDwords, rows);
  if (wave.checks) wave.checks->vmem_write(wave, p, 4 * kDwords, {rows});
  store_rows<kDwords>(p, rows);
}

// Bytes and shorts. The d16 loads clear the other half, as a card with SRAM ECC does.
template <class T, int kShift, uint32_t kMask = ~0u>
struct Small {
  using Type = T;
  static uint32_t extend(T v) {
    return (static_cast<uint32_t>(static_cast<int32_t>(v)) & kMask) << kShift;
  }
  static T truncate(uint32_t v) { return static_cast<T>(v >> kShift); }
  static constexpr uint32_t kBytes = sizeof(T), kFirstBit = kShift;
};

template <class Addressing, class Format>
void run_load_small(Wave& wave, const Inst& inst) {
  LanePointers p;
  Addressing::resolve(wave, inst, load_shape<Addressing>(Format::kBytes), p);
  uint32_t* row = wave.row(inst.dst.index);
  if (wave.checks) wave.checks->vmem_read(wave, p, Format::kBytes, row, inst.memory.glc);
  for_each_lane(p.out_of_range, [&](uint32_t lane) { row[lane] = 0; });
  for_each_lane(p.lanes, [&](uint32_t lane) {
    typename Format::Type value;
    std::memcpy(&value, p[lane], sizeof value);
    row[lane] = Format::extend(value);
  });
}
template <class Addressing, class Format>
void run_store_small(Wave& wave, const Inst& inst) {
  LanePointers p;
  Addressing::resolve(wave, inst, store_shape<Addressing>(Format::kBytes), p);
  const uint32_t* row = wave.row(store_data<Addressing>(inst).index);
  if (wave.checks) wave.checks->vmem_write(wave, p, Format::kBytes, {row, Format::kFirstBit});
  for_each_lane(p.lanes, [&](uint32_t lane) {
    const typename Format::Type value = Format::truncate(row[lane]);
    std::memcpy(p[lane], &value, sizeof value);
  });
}

template <class Addressing>
constexpr OpcodeRow load(std::string_view name, RunFunction run, Kind dst = Kind::b32) {
  OpcodeRow row{.name = name, .run = run, .cls = InstClass::vmem, .dst = dst};
  if constexpr (std::is_same_v<Addressing, GlobalAddressing>) row.src = {Kind::b64, Kind::b64};
  if constexpr (std::is_same_v<Addressing, FlatAddressing>) row.src = {Kind::b64};
  if constexpr (std::is_same_v<Addressing, BufferAddressing>)
    row.src = {Kind::b32, Kind::b128, Kind::b32};
  return row;
}
template <class Addressing>
constexpr OpcodeRow store(std::string_view name, RunFunction run, Kind data = Kind::b32) {
  OpcodeRow row{.name = name, .run = run, .cls = InstClass::vmem};
  if constexpr (std::is_same_v<Addressing, GlobalAddressing>)
    row.src = {Kind::b64, data, Kind::b64};
  if constexpr (std::is_same_v<Addressing, FlatAddressing>) row.src = {Kind::b64, data};
  if constexpr (std::is_same_v<Addressing, BufferAddressing>)
    row.src = {data, Kind::b32, Kind::b128, Kind::b32};
  return row;
}

// clang-format off
#define MEMORY_ROWS(prefix, A)                                                            \
  load<A>(prefix "_load_dword", &run_load<A, 1>),                                         \
  load<A>(prefix "_load_dwordx2", &run_load<A, 2>, Kind::b64),                            \
  load<A>(prefix "_load_dwordx3", &run_load<A, 3>, Kind::b96),                            \
  load<A>(prefix "_load_dwordx4", &run_load<A, 4>, Kind::b128),                           \
  load<A>(prefix "_load_ubyte", &run_load_small<A, Small<uint8_t, 0>>),                   \
  load<A>(prefix "_load_sbyte", &run_load_small<A, Small<int8_t, 0>>),                    \
  load<A>(prefix "_load_ushort", &run_load_small<A, Small<uint16_t, 0>>),                 \
  load<A>(prefix "_load_sshort", &run_load_small<A, Small<int16_t, 0>>),                  \
  load<A>(prefix "_load_ubyte_d16", &run_load_small<A, Small<uint8_t, 0>>),               \
  load<A>(prefix "_load_ubyte_d16_hi", &run_load_small<A, Small<uint8_t, 16>>),           \
  load<A>(prefix "_load_sbyte_d16", &run_load_small<A, Small<int8_t, 0, 0xffff>>),        \
  load<A>(prefix "_load_sbyte_d16_hi", &run_load_small<A, Small<int8_t, 16>>),            \
  load<A>(prefix "_load_short_d16", &run_load_small<A, Small<uint16_t, 0>>),              \
  load<A>(prefix "_load_short_d16_hi", &run_load_small<A, Small<uint16_t, 16>>),          \
  store<A>(prefix "_store_dword", &run_store<A, 1>),                                      \
  store<A>(prefix "_store_dwordx2", &run_store<A, 2>, Kind::b64),                         \
  store<A>(prefix "_store_dwordx3", &run_store<A, 3>, Kind::b96),                         \
  store<A>(prefix "_store_dwordx4", &run_store<A, 4>, Kind::b128),                        \
  store<A>(prefix "_store_byte", &run_store_small<A, Small<uint8_t, 0>>),                 \
  store<A>(prefix "_store_byte_d16_hi", &run_store_small<A, Small<uint8_t, 16>>),         \
  store<A>(prefix "_store_short", &run_store_small<A, Small<uint16_t, 0>>),               \
  store<A>(prefix "_store_short_d16_hi", &run_store_small<A, Small<uint16_t, 16>>)
// clang-format on

constexpr OpcodeRow kRows[] = {
    MEMORY_ROWS("global", GlobalAddressing),
    MEMORY_ROWS("flat", FlatAddressing),
    MEMORY_ROWS("buffer", BufferAddressing),
};

}  // namespace

Rows vmem_rows() { return kRows; }

}  // namespace fasim
