#include <atomic>

#include "check/wave_checks.h"
#include "exec/addressing.h"
#include "exec/atomic_ops.h"
#include "exec/lane_access.h"
#include "exec/rows.h"

namespace fasim {
namespace {

// Other workgroups run on other host threads, so the update is a real atomic.
template <class T, class Update>
T exchange(uint8_t* at, Update update) {
  std::atomic_ref<T> memory(*reinterpret_cast<T*>(at));
  T old = memory.load(std::memory_order_relaxed);
  while (!memory.compare_exchange_weak(old, update(old), std::memory_order_acq_rel)) {
  }
  return old;
}

// MUBUF names the data first and returns the old value into it.
template <class Addressing>
constexpr bool kDataFirst = std::is_same_v<Addressing, BufferAddressing>;

template <class Addressing, class T, class Update>
void for_each_atomic(Wave& wave, const Inst& inst, Update update) {
  LanePointers p;
  const AccessShape shape{.bytes = sizeof(T),
                          .access = Access::write,
                          .first_source = kDataFirst<Addressing>,
                          .saddr_source = 2,
                          .alignment = sizeof(T)};
  Addressing::resolve(wave, inst, shape, p);
  const Operand data = inst.src[kDataFirst<Addressing> ? 0 : 1];
  const Operand dst = kDataFirst<Addressing> ? data : inst.dst;
  if (wave.checks) {
    wave.checks->vmem_atomic(wave, p, sizeof(T), inst.memory.glc ? wave.row(dst.index) : nullptr);
  }
  for_each_lane(p.lanes, [&](uint32_t lane) {
    const T old =
        exchange<T>(p[lane], [&](T value) { return update(value, wave.row(data.index), lane); });
    if (inst.memory.glc) write_lane<T>(wave.row(dst.index), lane, old);
  });
}

template <class Addressing, class T, class Fn>
void run_atomic(Wave& wave, const Inst& inst) {
  for_each_atomic<Addressing, T>(wave, inst, [](T old, const uint32_t* data, uint32_t lane) {
    return Fn{}(old, read_lane<T>(data, lane));
  });
}
// The data operand holds the new value, then the value to compare with.
template <class Addressing, class T>
void run_compare_swap(Wave& wave, const Inst& inst) {
  for_each_atomic<Addressing, T>(wave, inst, [](T old, const uint32_t* data, uint32_t lane) {
    const T compare = read_lane<T>(data + sizeof(T) / 4 * kLanes, lane);
    return old == compare ? read_lane<T>(data, lane) : old;
  });
}

template <class Addressing, class T>
constexpr OpcodeRow row(std::string_view name, RunFunction run, Kind data) {
  OpcodeRow r{.name = name, .run = run, .cls = InstClass::vmem, .flags = OpcodeRow::kGlcReturns};
  r.dst = sizeof(T) == 8 ? Kind::b64 : Kind::b32;
  if constexpr (std::is_same_v<Addressing, GlobalAddressing>) r.src = {Kind::b64, data, Kind::b64};
  if constexpr (std::is_same_v<Addressing, FlatAddressing>) r.src = {Kind::b64, data};
  if constexpr (kDataFirst<Addressing>) {
    r.src = {data, Kind::b32, Kind::b128, Kind::b32};
    r.dst = Kind::none;
    r.flags = 0;
  }
  return r;
}
template <class Addressing, class T, class Fn>
constexpr OpcodeRow atomic(std::string_view name) {
  return row<Addressing, T>(name, &run_atomic<Addressing, T, Fn>,
                            sizeof(T) == 8 ? Kind::b64 : Kind::b32);
}
template <class Addressing, class T>
constexpr OpcodeRow compare_swap(std::string_view name) {
  return row<Addressing, T>(name, &run_compare_swap<Addressing, T>,
                            sizeof(T) == 8 ? Kind::b128 : Kind::b64);
}

// clang-format off
#define ATOMIC_ROWS(prefix, suffix, A, T)                            \
  atomic<A, T, AtomicSwap>(prefix "_atomic_swap" suffix),            \
  compare_swap<A, T>(prefix "_atomic_cmpswap" suffix),               \
  atomic<A, T, AtomicAdd>(prefix "_atomic_add" suffix),              \
  atomic<A, T, AtomicSub>(prefix "_atomic_sub" suffix),              \
  atomic<A, T, AtomicSignedMin>(prefix "_atomic_smin" suffix),       \
  atomic<A, T, AtomicUnsignedMin>(prefix "_atomic_umin" suffix),     \
  atomic<A, T, AtomicSignedMax>(prefix "_atomic_smax" suffix),       \
  atomic<A, T, AtomicUnsignedMax>(prefix "_atomic_umax" suffix),     \
  atomic<A, T, AtomicAnd>(prefix "_atomic_and" suffix),              \
  atomic<A, T, AtomicOr>(prefix "_atomic_or" suffix),                \
  atomic<A, T, AtomicXor>(prefix "_atomic_xor" suffix),              \
  atomic<A, T, AtomicIncrement>(prefix "_atomic_inc" suffix),        \
  atomic<A, T, AtomicDecrement>(prefix "_atomic_dec" suffix)
// clang-format on

constexpr OpcodeRow kRows[] = {
    ATOMIC_ROWS("global", "", GlobalAddressing, uint32_t),
    ATOMIC_ROWS("global", "_x2", GlobalAddressing, uint64_t),
    ATOMIC_ROWS("flat", "", FlatAddressing, uint32_t),
    ATOMIC_ROWS("flat", "_x2", FlatAddressing, uint64_t),
    ATOMIC_ROWS("buffer", "", BufferAddressing, uint32_t),
    ATOMIC_ROWS("buffer", "_x2", BufferAddressing, uint64_t),
};

}  // namespace

Rows vmem_atomic_rows() { return kRows; }

}  // namespace fasim
