// What LDS and memory instructions report while they run.
#include <algorithm>
#include <bit>

#include "check/fault.h"
#include "check/wave_checks.h"
#include "exec/addressing.h"

namespace fasim {

void WaveChecks::mark_undefined(const Wave& wave, uint16_t row, uint64_t lanes,
                                const Origin& origin) {
  if (!lanes) return;
  leave_segment(*(wave.pc - 1));
  registers_.set_lanes(row, registers_.lanes(row) & ~lanes);
  registers_.vgpr_origin[row] = origin;
}

void WaveChecks::lds_read(const Wave& wave, LdsAccess access, const uint32_t* rows) {
  access.wave = wave.index;
  if (group_->lds.read(access)) [[likely]]
    return;
  const uint32_t bytes = access.bytes;
  access.bytes = std::min(bytes, 4u);
  access.lanes = wave.exec();
  for (uint32_t at = 0; at < bytes; at += 4, access.offset += 4, rows += kLanes) {
    const uint64_t undefined = group_->lds.undefined_lanes(access);
    if (!undefined) continue;
    const auto lane = static_cast<uint32_t>(std::countr_zero(undefined));
    mark_undefined(wave, row_of(wave, rows), undefined,
                   {Origin::From::lds, group_->lds.first_undefined(access, lane)});
  }
}

void WaveChecks::lds_write(const Wave& wave, LdsAccess access, const StoreData& data) {
  access.wave = wave.index;
  const uint32_t count = (access.bytes + 3) / 4;
  const uint16_t first = row_of(wave, data.rows);
  uint64_t defined = ~0ull;
  for (uint16_t i = 0; i < count; ++i)
    defined &= registers_.lanes(static_cast<uint16_t>(first + i));
  const bool all = !(access.lanes & ~defined);
  group_->lds.write(access, all, data, wave.lds);
  if (all) return;
  const uint32_t bytes = access.bytes;
  access.bytes = std::min(bytes, 4u);
  for (uint16_t i = 0; i < count; ++i, access.offset += 4)
    group_->lds.define(access, ~registers_.lanes(static_cast<uint16_t>(first + i)));
}

void WaveChecks::lds_atomic(const Wave& wave, LdsAccess access, const uint32_t* rows,
                            bool replaces) {
  access.wave = wave.index;
  if (group_->lds.atomic(access)) [[likely]]
    return;
  const uint64_t undefined = group_->lds.undefined_lanes(access);
  const auto lane = static_cast<uint32_t>(std::countr_zero(undefined));
  const Origin origin{Origin::From::lds, group_->lds.first_undefined(access, lane)};
  if (replaces) group_->lds.define(access, 0);
  if (!rows) return;
  for (uint32_t at = 0; at < access.bytes; at += 4, rows += kLanes)
    mark_undefined(wave, row_of(wave, rows), undefined, origin);
}

void WaveChecks::exchanged(const Wave& wave, const uint32_t* row, const uint32_t* data,
                           const uint8_t* source_lane) {
  uint64_t undefined = exchange_undefined_;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (source_lane[lane] < kLanes && !(exchange_data_ >> source_lane[lane] & 1))
      undefined |= 1ull << lane;
  }
  undefined &= wave.exec();
  mark_undefined(
      wave, row_of(wave, row), undefined,
      exchange_undefined_ ? exchange_origin_ : registers_.origin_of_vgpr(row_of(wave, data)));
}

namespace {

// Calls fn(access, rows) for each dword, or the part of one, of the FLAT lanes that go to LDS:
// these are aligned to dwords only.
template <class Fn>
void for_flat_lds(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                  const uint32_t* rows, Fn fn) {
  if (!pointers.shared) return;
  uint32_t offsets[kLanes] = {};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if (pointers.shared >> lane & 1)
      offsets[lane] = static_cast<uint32_t>(pointers[lane] - wave.lds);
  }
  LdsAccess access{offsets, 0, pointers.shared, std::min(bytes, 4u), wave.index};
  for (; access.offset < bytes; access.offset += 4) {
    fn(access, rows);
    if (rows) rows += kLanes;
  }
}

}  // namespace

void WaveChecks::smem_read(const Wave& wave, uint64_t address, uint32_t bytes) {
  if (!group_->global || wave.memory->read_only(address, address + bytes)) return;
  try {
    group_->global->touch(group_->group, {&address, 1, bytes}, GlobalShadow::Use::read);
  } catch (SimFault& fault) {
    fault.lane = -1;
    throw;
  }
}

void WaveChecks::vmem_read(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                           const uint32_t* rows, bool glc) {
  for_flat_lds(wave, pointers, bytes, rows,
               [&](const LdsAccess& access, const uint32_t* row) { lds_read(wave, access, row); });
  if (!glc && !pointers.read_only) touch_global(pointers, bytes, GlobalShadow::Use::read);
}

void WaveChecks::vmem_write(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                            const StoreData& data) {
  for_flat_lds(wave, pointers, bytes, data.rows, [&](const LdsAccess& access, const uint32_t* row) {
    lds_write(wave, access, {row, data.shift});
  });
  touch_global(pointers, bytes, GlobalShadow::Use::write, data);
}

void WaveChecks::vmem_atomic(const Wave& wave, const LanePointers& pointers, uint32_t bytes,
                             const uint32_t* rows) {
  for_flat_lds(wave, pointers, bytes, rows, [&](const LdsAccess& access, const uint32_t* row) {
    lds_atomic(wave, access, row, false);
  });
  if (rows) group_->group.acquired = true;
  touch_global(pointers, bytes, GlobalShadow::Use::atomic);
}

// FLAT lanes that go to scratch or LDS have no part in races between workgroups, nor has MUBUF to
// scratch.
void WaveChecks::touch_global(const LanePointers& pointers, uint32_t bytes, GlobalShadow::Use use,
                              const StoreData& data) {
  if (group_->global && pointers.global)
    group_->global->touch(group_->group, {pointers.host, pointers.global, bytes}, use, data);
}

}  // namespace fasim
