#include "exec/gpr_index.h"

#include "check/fault.h"
#include "check/text.h"
#include "exec/operands.h"
#include "exec/rows.h"

namespace fasim {
namespace {

// M0 while indexing: the displacement in bits 7:0, the operands it applies to in bits 15:12.
constexpr uint32_t kIndexMask = 0xff, kEnableShift = 12, kEnableMask = 0xf;
constexpr uint32_t kDestination = 3;  // bit of the enables; bits 0 to 2 are the sources

void displace(const Wave& wave, Operand& o, uint32_t by) {
  if (o.where != Where::vgpr) return;
  const uint32_t last = o.index + by + o.dwords - 1;
  if (last >= wave.vgprs) {
    throw SimFault(
        text("VGPR indexing makes v%u + %u of v%u, but the kernel descriptor allocates "
             "v0 to v%u",
             o.index, by, o.index + by, wave.vgprs - 1));
  }
  o.index = static_cast<uint16_t>(o.index + by);
}

void set_enables(Wave& wave, uint32_t enables) {
  wave.sgpr[kM0] = (wave.sgpr[kM0] & ~(kEnableMask << kEnableShift)) | (enables & kEnableMask)
                                                                           << kEnableShift;
}
void set_index(Wave& wave, uint32_t index) {
  wave.sgpr[kM0] = (wave.sgpr[kM0] & ~kIndexMask) | (index & kIndexMask);
}
void set_indexing(Wave& wave, bool on) {
  wave.indexed_vgprs = on;
  wave.mode_changed();
}

// The enables stand where a second source would, in bits 15:8 of the word.
void run_on(Wave& wave, const Inst& inst) {
  set_index(wave, read_scalar32(wave, inst.src[0]));
  set_enables(wave, static_cast<uint32_t>(inst.immediate) >> 8);
  set_indexing(wave, true);
}
void run_off(Wave& wave, const Inst&) { set_indexing(wave, false); }
void run_index(Wave& wave, const Inst& inst) { set_index(wave, read_scalar32(wave, inst.src[0])); }
void run_mode(Wave& wave, const Inst& inst) {
  set_enables(wave, static_cast<uint32_t>(inst.immediate));
}

constexpr OpcodeRow kRows[] = {
    {.name = "s_set_gpr_idx_on",
     .run = &run_on,
     .cls = InstClass::salu,
     .src = {Kind::b32, Kind::simm16}},
    {.name = "s_set_gpr_idx_off", .run = &run_off, .cls = InstClass::other},
    {.name = "s_set_gpr_idx_idx", .run = &run_index, .cls = InstClass::salu, .src = {Kind::b32}},
    {.name = "s_set_gpr_idx_mode",
     .run = &run_mode,
     .cls = InstClass::other,
     .src = {Kind::simm16}},
};

}  // namespace

Inst index_vgprs(const Wave& wave, const Inst& inst) {
  const uint32_t m0 = wave.sgpr[kM0], by = m0 & kIndexMask, enables = m0 >> kEnableShift;
  Inst indexed = inst;
  for (uint32_t i = 0; i < kMaskSlot; ++i) {
    if (enables >> i & 1) displace(wave, indexed.src[i], by);
  }
  if (enables >> kDestination & 1) displace(wave, indexed.dst, by);
  return indexed;
}

Rows gpr_index_rows() { return kRows; }

}  // namespace fasim
