// Scalar arithmetic: an opcode's function over one value, written as a lambda.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "exec/operands.h"
#include "isa/opcodes.h"

namespace fasim {

// Results.
template <class T>
struct NonZero {};  // T, with SCC = result is not zero
template <class T>
struct WithScc {  // T, with SCC as the lambda says
  T value;
  bool scc;
};
struct Scc {};  // SCC alone, from a bool

// Sources beside uint32_t, int32_t, uint64_t and int64_t.
struct SccIn {};
struct Simm16 {};
template <class T>
struct OldDst {};  // the destination's value before

namespace scalar_detail {

template <class T>
constexpr Kind kind_of() {
  return sizeof(T) == 8 ? Kind::b64 : Kind::b32;
}

template <class T>
struct Source {
  static constexpr Kind kKind = kind_of<T>();
  static constexpr bool kOld = false;
  static T load(const Wave& wave, const Inst& inst, int slot) {
    if constexpr (sizeof(T) == 8) return static_cast<T>(read_scalar64(wave, inst.src[slot]));
    return static_cast<T>(read_scalar32(wave, inst.src[slot]));
  }
};
template <class T>
struct Source<OldDst<T>> : Source<T> {
  static constexpr bool kOld = true;
};
template <>
struct Source<SccIn> {
  static constexpr Kind kKind = Kind::none;
  static constexpr bool kOld = false;
  static bool load(const Wave& wave, const Inst&, int) { return wave.scc; }
};
template <>
struct Source<Simm16> {
  static constexpr Kind kKind = Kind::simm16;
  static constexpr bool kOld = false;
  static int32_t load(const Wave&, const Inst& inst, int) {
    return static_cast<int32_t>(inst.immediate);
  }
};

template <class T>
void write(Wave& wave, Operand dst, T value) {
  if constexpr (sizeof(T) == 8) {
    wave.write64(dst.index, static_cast<uint64_t>(value));
  } else {
    wave.sgpr[dst.index] = static_cast<uint32_t>(value);
  }
}

template <class R>
struct Result {
  static constexpr Kind kDst = kind_of<R>();
  static constexpr bool kScc = false;
  static void store(Wave& wave, const Inst& inst, R v) { write<R>(wave, inst.dst, v); }
};
template <class T>
struct Result<NonZero<T>> {
  static constexpr Kind kDst = kind_of<T>();
  static constexpr bool kScc = true;
  static void store(Wave& wave, const Inst& inst, T v) {
    write<T>(wave, inst.dst, v);
    wave.scc = v != 0;
  }
};
template <class T>
struct Result<WithScc<T>> {
  static constexpr Kind kDst = kind_of<T>();
  static constexpr bool kScc = true;
  static void store(Wave& wave, const Inst& inst, WithScc<T> v) {
    write<T>(wave, inst.dst, v.value);
    wave.scc = v.scc;
  }
};
template <>
struct Result<Scc> {
  static constexpr Kind kDst = Kind::none;
  static constexpr bool kScc = true;
  static void store(Wave& wave, const Inst&, bool v) { wave.scc = v; }
};

template <class Sig>
struct Signature;
template <class R, class... S>
struct Signature<R(S...)> {
  static constexpr int slot(size_t i) {
    constexpr Kind kinds[] = {Source<S>::kKind..., Kind::none};
    int n = 0;
    for (size_t k = 0; k < i; ++k) n += kinds[k] != Kind::none;
    return n;
  }
  template <class Fn, size_t... I>
  static void apply(Wave& wave, const Inst& inst, std::index_sequence<I...>) {
    Result<R>::store(wave, inst, Fn{}(Source<S>::load(wave, inst, slot(I))...));
  }
  template <class Fn>
  static void run(Wave& wave, const Inst& inst) {
    apply<Fn>(wave, inst, std::index_sequence_for<S...>{});
  }
};

}  // namespace scalar_detail

// One SALU opcode: `salu<NonZero<uint32_t>(uint32_t, uint32_t)>("s_and_b32", [](auto a, auto b)
// {...})`.
template <class Sig>
struct SaluKinds;
template <class R, class... S>
struct SaluKinds<R(S...)> {
  static constexpr OpcodeRow row(std::string_view name, RunFunction run) {
    using namespace scalar_detail;
    OpcodeRow r;
    r.name = name;
    r.run = run;
    r.cls = InstClass::salu;
    r.dst = Result<R>::kDst;
    if (Result<R>::kScc) r.flags |= OpcodeRow::kWritesScc;
    if ((std::is_same_v<S, SccIn> || ...)) r.flags |= OpcodeRow::kReadsScc;
    constexpr Kind kinds[] = {Source<S>::kKind..., Kind::none};
    constexpr bool old[] = {Source<S>::kOld..., false};
    size_t n = 0;
    for (size_t i = 0; i < sizeof...(S); ++i) {
      if (kinds[i] == Kind::none) continue;
      if (old[i]) r.flags |= OpcodeRow::kReadsDst;
      r.src[n++] = kinds[i];
    }
    return r;
  }
};
template <class Sig, class Fn>
constexpr OpcodeRow salu(std::string_view name, Fn) {
  return SaluKinds<Sig>::row(name, &scalar_detail::Signature<Sig>::template run<Fn>);
}

}  // namespace fasim
