// The lane exchanges written out over an array of 64 lanes, from the ISA's description.
#pragma once

#define FUZZ_KERNEL(name) \
  extern "C" void name(const State* in, u32* out, const u32* table, u32* slots, u32 groups)
#define BEGIN                                                        \
  for (u32 group = 0; group < groups; ++group) {                     \
    State states[kLanes];                                            \
    Context contexts[kLanes];                                        \
    for (u32 lane = 0; lane < kLanes; ++lane) {                      \
      states[lane] = in[group * kLanes + lane];                      \
      contexts[lane] = {table, slots + group * kLanes + lane, lane}; \
    }
#define PHASE(function) \
  for (u32 lane = 0; lane < kLanes; ++lane) function(states[lane], contexts[lane]);
#define EXCHANGE(member, source, ...)                      \
  {                                                        \
    Row old, value;                                        \
    for (u32 lane = 0; lane < kLanes; ++lane) {            \
      old[lane] = states[lane].member;                     \
      value[lane] = states[lane].source;                   \
    }                                                      \
    for (u32 lane = 0; lane < kLanes; ++lane) {            \
      states[lane].member = __VA_ARGS__(lane, old, value); \
    }                                                      \
  }
#define END                                                                             \
  for (u32 lane = 0; lane < kLanes; ++lane) {                                           \
    write_out(states[lane], contexts[lane], out + (group * kLanes + lane) * kOutWords); \
  }                                                                                     \
  }

using Row = u32[kLanes];

// The lane that a DPP control reads, or -1 where there is none.
static int dpp_source(int control, int lane) {
  const int row = lane & ~15, in_row = lane & 15, amount = control & 15;
  if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);
  switch (control & 0x1f0) {
    case 0x100:
      return in_row + amount <= 15 ? lane + amount : -1;  // row_shl
    case 0x110:
      return in_row >= amount ? lane - amount : -1;  // row_shr
    case 0x120:
      return row | ((in_row - amount) & 15);  // row_ror
  }
  switch (control) {
    case 0x130:
      return lane < 63 ? lane + 1 : -1;  // wave_shl:1
    case 0x134:
      return (lane + 1) & 63;  // wave_rol:1
    case 0x138:
      return lane - 1;  // wave_shr:1
    case 0x13c:
      return (lane - 1) & 63;  // wave_ror:1
    case 0x140:
      return row | (15 - in_row);  // row_mirror
    case 0x141:
      return lane ^ 7;  // row_half_mirror
    case 0x142:
      return row - 1;  // row_bcast:15
    case 0x143:
      return lane > 31 ? 31 : -1;  // row_bcast:31
  }
  __builtin_trap();
}

template <int control, int rows, int banks, bool zero>
static u32 dpp(u32 lane, const Row& old, const Row& value) {
  const bool enabled = (rows >> lane / 16 & 1) && (banks >> lane / 4 % 4 & 1);
  if (!enabled) return old[lane];
  const int source = dpp_source(control, static_cast<int>(lane));
  if (source < 0) return zero ? 0 : old[lane];
  return value[source];
}

template <int pattern>
static u32 swizzle(u32 lane, const Row&, const Row& value) {
  if (pattern & 0x8000) return value[(lane & ~3u) | (pattern >> 2 * (lane & 3) & 3)];
  const u32 low = (((lane & 31) & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return value[(lane & 32) | low];
}

static inline u32 pull(u32 lane, const Row& from, const Row& value) {
  return value[from[lane] & 63];
}

template <u32 odd, u32 add>
static u32 push(u32 lane, const Row&, const Row& value) {
  for (u32 sender = 0; sender < kLanes; ++sender) {
    if (((sender * odd + add) & 63) == lane) return value[sender];
  }
  return 0;
}

template <int from>
static u32 broadcast(u32, const Row&, const Row& value) {
  return value[from];
}

static inline u32 broadcast_first(u32, const Row&, const Row& value) { return value[0]; }

static inline u32 count_odd(u32 lane, const Row&, const Row& value) {
  u32 count = 0;
  for (u32 lower = 0; lower < lane; ++lower) count += value[lower] & 1;
  return count;
}

template <u32 odd, u32 add>
static u32 through_lds(u32 lane, const Row& old, const Row& value) {
  return push<odd, add>(lane, old, value);
}

template <u32 odd>
static u32 bytes_through_lds(u32 lane, const Row&, const Row& value) {
  u8 bytes[kLanes * 4];
  for (u32 sender = 0; sender < kLanes; ++sender) {
    for (u32 n = 0; n < 4; ++n)
      bytes[(sender * odd & 63) + 64 * n] = static_cast<u8>(value[sender] >> 8 * n);
  }
  u32 out = 0;
  for (u32 n = 0; n < 4; ++n) out |= static_cast<u32>(bytes[lane * 4 + n]) << 8 * n;
  return out;
}

static inline u32 reduce_in_lds(u32 lane, const Row&, const Row& value) {
  u32 sum = 0, largest = 0;
  for (u32 other = lane & 3; other < kLanes; other += 4) {
    sum += value[other];
    largest = value[other] > largest ? value[other] : largest;
  }
  return sum ^ largest;
}
