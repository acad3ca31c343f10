// Lane exchanges by the card's own instructions.
#pragma once

#define FUZZ_KERNEL(name)                                                            \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void name( \
      const State* in, u32* out, const u32* table, u32* slots)
#define BEGIN                                                          \
  const u32 lane = __builtin_amdgcn_workitem_id_x();                   \
  const u32 index = __builtin_amdgcn_workgroup_id_x() * kLanes + lane; \
  State s = in[index];                                                 \
  const Context c{table, slots + index, lane};
#define PHASE(function) function(s, c);
// `member` keeps its value where the exchange gives a lane nothing.
#define EXCHANGE(member, source, ...) s.member = __VA_ARGS__(lane, s.member, s.source);
#define END write_out(s, c, out + index * kOutWords);

#define EXCHANGE_FUNCTION static inline __attribute__((device, always_inline)) u32

template <int control, int rows, int banks, bool zero>
EXCHANGE_FUNCTION dpp(u32, u32 old, u32 value) {
  u32 moved = __builtin_amdgcn_update_dpp(old, value, control, rows, banks, zero);
#if defined(HIDE_DPP)
  HIDE(moved);
#endif
  return moved;
}

template <int pattern>
EXCHANGE_FUNCTION swizzle(u32, u32, u32 value) {
  return __builtin_amdgcn_ds_swizzle(value, pattern);
}

EXCHANGE_FUNCTION pull(u32, u32 from, u32 value) {
  return __builtin_amdgcn_ds_bpermute((from & 63) * 4, value);
}

template <u32 odd, u32 add>
EXCHANGE_FUNCTION push(u32 lane, u32, u32 value) {
  return __builtin_amdgcn_ds_permute(((lane * odd + add) & 63) * 4, value);
}

template <int from>
EXCHANGE_FUNCTION broadcast(u32, u32, u32 value) {
  return __builtin_amdgcn_readlane(value, from);
}

EXCHANGE_FUNCTION broadcast_first(u32, u32, u32 value) {
  return __builtin_amdgcn_readfirstlane(value);
}

// How many lower lanes have an odd value.
EXCHANGE_FUNCTION count_odd(u32, u32, u32 value) {
  const u64 odd = __builtin_amdgcn_ballot_w64(value & 1);
  return __builtin_amdgcn_mbcnt_hi(odd >> 32, __builtin_amdgcn_mbcnt_lo(odd, 0));
}

static inline __attribute__((device, always_inline)) void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

template <u32 odd, u32 add>
EXCHANGE_FUNCTION through_lds(u32 lane, u32, u32 value) {
  static __attribute__((shared)) u32 words[kLanes];
  group_barrier();
  words[(lane * odd + add) & 63] = value;
  group_barrier();
  return words[lane];
}

template <u32 odd>
EXCHANGE_FUNCTION bytes_through_lds(u32 lane, u32, u32 value) {
  static __attribute__((shared)) u8 bytes[kLanes * 4];
  group_barrier();
  for (u32 n = 0; n < 4; ++n) bytes[(lane * odd & 63) + 64 * n] = static_cast<u8>(value >> 8 * n);
  group_barrier();
  u32 out = 0;
  for (u32 n = 0; n < 4; ++n) out |= static_cast<u32>(bytes[lane * 4 + n]) << 8 * n;
  return out;
}

// Sum and maximum over the lanes that share lane % 4.
EXCHANGE_FUNCTION reduce_in_lds(u32 lane, u32, u32 value) {
  static __attribute__((shared)) u32 sum[4], largest[4];
  group_barrier();
  if (lane < 4) sum[lane] = 0, largest[lane] = 0;
  group_barrier();
  __atomic_fetch_add(&sum[lane & 3], value, __ATOMIC_RELAXED);
  __atomic_fetch_max(&largest[lane & 3], value, __ATOMIC_RELAXED);
  group_barrier();
  return sum[lane & 3] ^ largest[lane & 3];
}
