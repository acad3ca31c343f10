#include "check/lds_shadow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "check/fault.h"
#include "check/text.h"
#include "exec/lane_access.h"

namespace fasim {
namespace {

constexpr uint8_t kDefined = 0x80, kCodeBits = 0x7f;
constexpr uint32_t kMaxWaves = 16;

// A wave's code has three bits of seven. A byte or-ed from codes is therefore within one wave's
// code only if no other wave is in it, so that one AND finds other waves.
constexpr auto kCodes = [] {
  std::array<uint8_t, kMaxWaves> codes{};
  uint32_t count = 0;
  for (unsigned bits = 0; count < kMaxWaves; ++bits) {
    if (std::popcount(bits) == 3) codes[count++] = static_cast<uint8_t>(bits);
  }
  return codes;
}();
static_assert(kCodes.back() <= kCodeBits);

using u64x2 = uint64_t __attribute__((ext_vector_type(2)));

// As many cells as a lane's access has.
template <class C>
C repeat(uint8_t cell) {
  constexpr uint64_t kEach = 0x0101010101010101;
  if constexpr (sizeof(C) == 16)
    return u64x2(kEach * cell);
  else
    return static_cast<C>(kEach * cell);
}
template <class C>
bool is_zero(C cells) {
  if constexpr (sizeof(C) == 16)
    return (cells[0] | cells[1]) == 0;
  else
    return cells == 0;
}
template <class C>
C load_cells(const std::vector<uint8_t>& from, uint32_t at) {
  C cells;
  std::memcpy(&cells, from.data() + at, sizeof cells);
  return cells;
}
template <class C>
void join_cells(std::vector<uint8_t>& into, uint32_t at, C code) {
  const C cells = static_cast<C>(load_cells<C>(into, at) | code);
  std::memcpy(into.data() + at, &cells, sizeof cells);
}

template <class Fn>
void for_lanes(uint64_t lanes, Fn fn) {
  if (lanes == kAllLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) fn(lane);
  } else {
    for_each_lane(lanes, fn);
  }
}

}  // namespace

LdsShadow::LdsShadow(uint32_t bytes, bool by_byte)
    : shift_(by_byte ? 0 : 2),
      readers_((bytes + 3) >> shift_),
      writers_(readers_.size()),
      atomics_(readers_.size()) {}

// Calls fn(cells, access) with a value of a type that holds as many cells as each access has.
template <class Fn>
void LdsShadow::by_width(const LdsAccess& access, Fn fn) const {
  if (access.bytes == 12) {
    LdsAccess low = access, high = access;
    low.bytes = 8;
    high.bytes = 4;
    high.offset += 8;
    if (shift_) {
      fn(uint16_t{}, low);
      fn(uint8_t{}, high);
    } else {
      fn(uint64_t{}, low);
      fn(uint32_t{}, high);
    }
    return;
  }
  switch (access.bytes >> shift_) {
    case 1:
      return fn(uint8_t{}, access);
    case 2:
      return fn(uint16_t{}, access);
    case 4:
      return fn(uint32_t{}, access);
    case 8:
      return fn(uint64_t{}, access);
    default:
      return fn(u64x2{}, access);
  }
}

void LdsShadow::reset() {
  std::ranges::fill(writers_, 0);
  barrier();
}

void LdsShadow::barrier() {
  for (uint8_t& cell : writers_) cell &= kDefined;
  std::ranges::fill(readers_, 0);
  std::ranges::fill(atomics_, 0);
}

// A read joins its cells in the same walk, because it is the most frequent use and leaves nothing
// that tells of races with it; the others may only after they were found to be alone.
template <LdsShadow::Use kUse>
LdsShadow::Seen LdsShadow::look(const LdsAccess& whole) {
  const uint8_t mine = kCodes[whole.wave];
  const auto foreign = static_cast<uint8_t>(kCodeBits & ~mine);
  Seen seen{false, true};
  by_width(whole, [&]<class C>(C, const LdsAccess& access) {
    C any = repeat<C>(0), all = repeat<C>(kDefined);
    for_lanes(access.lanes, [&](uint32_t lane) {
      const uint32_t at = access.at(lane) >> shift_;
      const C writers = load_cells<C>(writers_, at);
      any |= writers;
      all &= writers;
      if (kUse == Use::write) any |= load_cells<C>(readers_, at) | load_cells<C>(atomics_, at);
      if (kUse == Use::read) join_cells<C>(readers_, at, repeat<C>(mine));
    });
    seen.others = seen.others || !is_zero<C>(static_cast<C>(any & repeat<C>(foreign)));
    seen.defined = seen.defined && is_zero<C>(static_cast<C>(all ^ repeat<C>(kDefined)));
  });
  return seen;
}

void LdsShadow::join(const LdsAccess& whole, std::vector<uint8_t>& cells, uint8_t code) {
  by_width(whole, [&]<class C>(C, const LdsAccess& access) {
    const C codes = repeat<C>(code);
    for_lanes(access.lanes,
              [&](uint32_t lane) { join_cells<C>(cells, access.at(lane) >> shift_, codes); });
  });
}

bool LdsShadow::read(const LdsAccess& access) {
  const Seen seen = look<Use::read>(access);
  if (seen.others) [[unlikely]]
    refuse_rivals(access, Use::read, nullptr, nullptr);
  return seen.defined;
}

void LdsShadow::write(const LdsAccess& access, bool defined, const StoreData& data,
                      const uint8_t* lds) {
  if (look<Use::write>(access).others) [[unlikely]]
    refuse_rivals(access, Use::write, &data, lds);
  join(access, writers_, defined ? kCodes[access.wave] | kDefined : kCodes[access.wave]);
}

bool LdsShadow::atomic(const LdsAccess& access) {
  const Seen seen = look<Use::atomic>(access);
  if (seen.others) [[unlikely]]
    refuse_rivals(access, Use::atomic, nullptr, nullptr);
  join(access, atomics_, kCodes[access.wave]);
  return seen.defined;
}

LdsShadow::Rivals LdsShadow::rivals(uint32_t address, uint32_t wave, Use use) const {
  const uint32_t cell = address >> shift_;
  const unsigned mine = kCodes[wave];
  const auto written = static_cast<uint8_t>(writers_[cell] & kCodeBits);
  // Where this wave wrote, too, the others' writes left its value.
  const bool own = (written & mine) == mine;
  if (written & ~mine && !(own && use == Use::read)) return {written, "written"};
  if (use != Use::write) return {};
  if (atomics_[cell] & ~mine) return {atomics_[cell], "atomically updated"};
  if (readers_[cell] & ~mine) return {readers_[cell], "read"};
  return {};
}

void LdsShadow::refuse_rivals(const LdsAccess& access, Use use, const StoreData* data,
                              const uint8_t* lds) const {
  constexpr const char* kVerbs[] = {"reads", "writes", "updates atomically"};
  for_each_lane(access.lanes, [&](uint32_t lane) {
    for (uint32_t i = 0; i < access.bytes; ++i) {
      const uint32_t at = access.at(lane) + i;
      const Rivals found = rivals(at, access.wave, use);
      if (!found.codes || (data && lds[at] == data->byte(lane, i))) continue;
      const auto rival = std::ranges::find(kCodes, found.codes);
      const std::string who =
          rival == kCodes.end() ? "another wave" : text("wave %td", rival - kCodes.begin());
      throw SimFault(text("LDS race: wave %u %s %u bytes at LDS address %#x, of which %s has %s "
                          "byte %#x since the last barrier; expected an s_barrier in between",
                          access.wave, kVerbs[static_cast<int>(use)], access.bytes, access.at(lane),
                          who.c_str(), found.did, at),
                     static_cast<int>(lane), at);
    }
  });
}

uint64_t LdsShadow::undefined_lanes(const LdsAccess& access) const {
  uint64_t undefined = 0;
  for_each_lane(access.lanes, [&](uint32_t lane) {
    uint8_t all = kDefined;
    for (uint32_t i = 0; i < access.bytes; ++i) all &= writers_[(access.at(lane) + i) >> shift_];
    undefined |= static_cast<uint64_t>(all == 0) << lane;
  });
  return undefined;
}

uint32_t LdsShadow::first_undefined(const LdsAccess& access, uint32_t lane) const {
  uint32_t address = access.at(lane);
  while (writers_[address >> shift_] & kDefined) ++address;
  return address;
}

void LdsShadow::define(const LdsAccess& access, uint64_t undefined_lanes) {
  for_each_lane(access.lanes, [&](uint32_t lane) {
    for (uint32_t i = 0; i < access.bytes; ++i) {
      uint8_t& cell = writers_[(access.at(lane) + i) >> shift_];
      cell = undefined_lanes >> lane & 1 ? cell & kCodeBits : cell | kDefined;
    }
  });
}

}  // namespace fasim
