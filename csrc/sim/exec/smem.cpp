#include <cinttypes>

#include "check/fault.h"
#include "check/text.h"
#include "check/wave_checks.h"
#include "exec/operands.h"
#include "exec/rows.h"

namespace fasim {
namespace {

uint64_t offset_of(const Wave& wave, const Inst& inst) {
  return read_scalar32(wave, inst.src[1]) +
         static_cast<uint64_t>(static_cast<int64_t>(inst.memory.offset));
}
// The constant offset of s_load is signed 21 bits; a register offset is unsigned.
uint64_t load_offset(const Wave& wave, const Inst& inst) {
  const uint64_t offset = offset_of(wave, inst);
  if (inst.src[1].where != Where::constant) return offset;
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(offset)));
}

template <int kDwords>
void run_load(Wave& wave, const Inst& inst) {
  // The low two address bits do not exist in the scalar cache.
  const uint64_t address = (wave.read64(inst.src[0].index) + load_offset(wave, inst)) & ~3ull;
  wave.memory->check(address, 4 * kDwords, Access::read, -1);
  if (wave.checks) wave.checks->smem_read(wave, address, 4 * kDwords);
  std::memcpy(&wave.sgpr[inst.dst.index], reinterpret_cast<const void*>(address), 4 * kDwords);
}

// A V# bounds the access; dwords beyond it read 0.
template <int kDwords>
void run_buffer_load(Wave& wave, const Inst& inst) {
  const uint32_t* v = &wave.sgpr[inst.src[0].index];
  const uint64_t base = (v[0] | static_cast<uint64_t>(v[1] & 0xffff) << 32) & ~3ull;
  const uint32_t stride = v[1] >> 16 & 0x3fff;
  const uint64_t size = stride ? static_cast<uint64_t>(v[2]) * stride : v[2];
  const uint64_t offset = offset_of(wave, inst) & ~3ull;
  uint32_t dwords[kDwords] = {};
  for (uint32_t d = 0; d < kDwords; ++d) {
    const uint64_t at = offset + 4 * d;
    if (at + 4 > size) continue;
    wave.memory->check(base + at, 4, Access::read, -1);
    if (wave.checks) wave.checks->smem_read(wave, base + at, 4);
    std::memcpy(&dwords[d], reinterpret_cast<const void*>(base + at), 4);
  }
  std::memcpy(&wave.sgpr[inst.dst.index], dwords, sizeof dwords);
}

// A clock that only this wave moves: results do not depend on the host.
void run_time(Wave& wave, const Inst& inst) { wave.write64(inst.dst.index, wave.instructions()); }

constexpr OpcodeRow load(std::string_view name, RunFunction run, Kind dst, Kind base) {
  return {.name = name, .run = run, .cls = InstClass::smem, .dst = dst, .src = {base, Kind::b32}};
}
constexpr OpcodeRow clock(std::string_view name) {
  return {.name = name, .run = &run_time, .cls = InstClass::smem, .dst = Kind::b64};
}

constexpr OpcodeRow kRows[] = {
    load("s_load_dword", &run_load<1>, Kind::b32, Kind::b64),
    load("s_load_dwordx2", &run_load<2>, Kind::b64, Kind::b64),
    load("s_load_dwordx4", &run_load<4>, Kind::b128, Kind::b64),
    load("s_load_dwordx8", &run_load<8>, Kind::b256, Kind::b64),
    load("s_load_dwordx16", &run_load<16>, Kind::b512, Kind::b64),
    load("s_buffer_load_dword", &run_buffer_load<1>, Kind::b32, Kind::b128),
    load("s_buffer_load_dwordx2", &run_buffer_load<2>, Kind::b64, Kind::b128),
    load("s_buffer_load_dwordx4", &run_buffer_load<4>, Kind::b128, Kind::b128),
    load("s_buffer_load_dwordx8", &run_buffer_load<8>, Kind::b256, Kind::b128),
    load("s_buffer_load_dwordx16", &run_buffer_load<16>, Kind::b512, Kind::b128),
    clock("s_memtime"),
    clock("s_memrealtime"),
};

}  // namespace

Rows smem_rows() { return kRows; }

}  // namespace fasim
