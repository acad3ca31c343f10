#include <bit>

#include "check/wave_checks.h"
#include "exec/atomic_ops.h"
#include "exec/lane_access.h"
#include "exec/lds.h"
#include "exec/operands.h"
#include "exec/rows.h"

namespace fasim {
namespace {

// Lanes act one after another, so lanes with the same address see each other. One workgroup's waves
// never run at the same time, so plain memory is enough.
template <class T, bool kReturns, class Update>
void for_each_atomic(Wave& wave, const Inst& inst, Update update) {
  const uint32_t* addresses = wave.row(inst.src[0].index);
  const auto offset = static_cast<uint32_t>(inst.memory.offset);
  check_lds(wave, addresses, wave.exec(), offset, sizeof(T), sizeof(T));
  if (wave.checks) {
    const bool replaces = inst.row->name.starts_with("ds_wrxchg");
    wave.checks->lds_atomic(wave, {addresses, offset, wave.exec(), sizeof(T)},
                            kReturns ? wave.row(inst.dst.index) : nullptr, replaces);
  }
  for_each_lane(wave.exec(), [&](uint32_t lane) {
    uint8_t* at = wave.lds + (addresses[lane] + offset);
    T old;
    std::memcpy(&old, at, sizeof old);
    const T fresh = update(old, lane);
    std::memcpy(at, &fresh, sizeof fresh);
    if constexpr (kReturns) write_lane<T>(wave.row(inst.dst.index), lane, old);
  });
}

template <class T, class Fn, bool kReturns>
void run_atomic(Wave& wave, const Inst& inst) {
  const uint32_t* data = wave.row(inst.src[1].index);
  for_each_atomic<T, kReturns>(
      wave, inst, [&](T old, uint32_t lane) { return Fn{}(old, read_lane<T>(data, lane)); });
}
template <class T, bool kReturns>
void run_compare_store(Wave& wave, const Inst& inst) {
  const uint32_t *compare = wave.row(inst.src[1].index), *data = wave.row(inst.src[2].index);
  for_each_atomic<T, kReturns>(wave, inst, [&](T old, uint32_t lane) {
    return old == read_lane<T>(compare, lane) ? read_lane<T>(data, lane) : old;
  });
}
// Clears the bits of the first data operand, then sets those of the second.
template <class T, bool kReturns>
void run_masked_or(Wave& wave, const Inst& inst) {
  const uint32_t *mask = wave.row(inst.src[1].index), *data = wave.row(inst.src[2].index);
  for_each_atomic<T, kReturns>(wave, inst, [&](T old, uint32_t lane) {
    return (old & ~read_lane<T>(mask, lane)) | read_lane<T>(data, lane);
  });
}

// ds_append and ds_consume: one counter for the wave, at M0 + offset, moved by the active lanes.
template <int kSign>
void run_counter(Wave& wave, const Inst& inst) {
  const uint32_t address = wave.sgpr[kM0] & 0xffff;
  alignas(64) uint32_t addresses[kLanes];
  for (uint32_t& a : addresses) a = address;
  const auto offset = static_cast<uint32_t>(inst.memory.offset);
  const uint64_t exec = wave.exec();
  check_lds(wave, addresses, exec, offset, 4, 4);
  if (wave.checks) {
    wave.checks->lds_atomic(wave, {addresses, offset, exec, 4}, wave.row(inst.dst.index), false);
  }
  uint32_t old;
  std::memcpy(&old, wave.lds + address + offset, 4);
  const uint32_t fresh = old + static_cast<uint32_t>(kSign * std::popcount(exec));
  std::memcpy(wave.lds + address + offset, &fresh, 4);
  for_each_lane(exec, [&](uint32_t lane) { wave.row(inst.dst.index)[lane] = old; });
}

template <class T>
constexpr Kind kKindOf = sizeof(T) == 8 ? Kind::b64 : Kind::b32;

template <class T, class Fn>
constexpr OpcodeRow atomic(std::string_view name) {
  return {.name = name,
          .run = &run_atomic<T, Fn, false>,
          .cls = InstClass::lds,
          .src = {Kind::b32, kKindOf<T>}};
}
template <class T, class Fn>
constexpr OpcodeRow atomic_rtn(std::string_view name) {
  return {.name = name,
          .run = &run_atomic<T, Fn, true>,
          .cls = InstClass::lds,
          .dst = kKindOf<T>,
          .src = {Kind::b32, kKindOf<T>}};
}
template <class T>
constexpr OpcodeRow two_operands(std::string_view name, RunFunction run, bool returns) {
  return {.name = name,
          .run = run,
          .cls = InstClass::lds,
          .dst = returns ? kKindOf<T> : Kind::none,
          .src = {Kind::b32, kKindOf<T>, kKindOf<T>}};
}

#define BOTH(op, type, T, Fn) \
  atomic<T, Fn>("ds_" op "_" type), atomic_rtn<T, Fn>("ds_" op "_rtn_" type)
#define INTEGER_ATOMICS(bits, T)                                                              \
  BOTH("add", "u" bits, T, AtomicAdd), BOTH("sub", "u" bits, T, AtomicSub),                   \
      BOTH("rsub", "u" bits, T, AtomicReverseSub), BOTH("inc", "u" bits, T, AtomicIncrement), \
      BOTH("dec", "u" bits, T, AtomicDecrement), BOTH("min", "i" bits, T, AtomicSignedMin),   \
      BOTH("max", "i" bits, T, AtomicSignedMax), BOTH("min", "u" bits, T, AtomicUnsignedMin), \
      BOTH("max", "u" bits, T, AtomicUnsignedMax), BOTH("and", "b" bits, T, AtomicAnd),       \
      BOTH("or", "b" bits, T, AtomicOr), BOTH("xor", "b" bits, T, AtomicXor),                 \
      atomic_rtn<T, AtomicSwap>("ds_wrxchg_rtn_b" bits),                                      \
      two_operands<T>("ds_cmpst_b" bits, &run_compare_store<T, false>, false),                \
      two_operands<T>("ds_cmpst_rtn_b" bits, &run_compare_store<T, true>, true),              \
      two_operands<T>("ds_mskor_b" bits, &run_masked_or<T, false>, false),                    \
      two_operands<T>("ds_mskor_rtn_b" bits, &run_masked_or<T, true>, true)

using AddF32 = AtomicFloat<float, AtomicAdd>;
using MinF32 = AtomicFloat<float, FloatMin>;
using MaxF32 = AtomicFloat<float, FloatMax>;
using MinF64 = AtomicFloat<double, FloatMin>;
using MaxF64 = AtomicFloat<double, FloatMax>;

constexpr OpcodeRow kRows[] = {
    INTEGER_ATOMICS("32", uint32_t),
    INTEGER_ATOMICS("64", uint64_t),
    BOTH("add", "f32", uint32_t, AddF32),
    BOTH("min", "f32", uint32_t, MinF32),
    BOTH("max", "f32", uint32_t, MaxF32),
    BOTH("min", "f64", uint64_t, MinF64),
    BOTH("max", "f64", uint64_t, MaxF64),
    {.name = "ds_append", .run = &run_counter<1>, .cls = InstClass::lds, .dst = Kind::b32},
    {.name = "ds_consume", .run = &run_counter<-1>, .cls = InstClass::lds, .dst = Kind::b32},
};

}  // namespace

Rows lds_atomic_rows() { return kRows; }

}  // namespace fasim
