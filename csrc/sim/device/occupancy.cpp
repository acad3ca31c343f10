#include "device/occupancy.h"

#include <algorithm>

namespace fasim {
namespace {

uint32_t round_up(uint32_t value, uint32_t granule) {
  return (value + granule - 1) / granule * granule;
}

// gfx9 keeps 800 SGPRs a SIMD; the steps are the ones that LLVM's occupancy remark uses.
uint32_t waves_by_sgprs(uint32_t sgprs) {
  if (sgprs <= 80) return 10;
  if (sgprs <= 88) return 9;
  if (sgprs <= 100) return 8;
  return 7;
}

uint32_t waves_by_vgprs(const Card& card, uint32_t vgprs) {
  return card.vgprs_per_simd / round_up(std::max(vgprs, 1u), card.vgpr_granule);
}

}  // namespace

Occupancy occupancy(const Card& card, const KernelResources& kernel) {
  const uint32_t waves = std::min(
      {card.max_waves_per_simd, waves_by_sgprs(kernel.sgprs), waves_by_vgprs(card, kernel.vgprs)});
  const uint32_t waves_per_group = (kernel.threads + card.wave_size - 1) / card.wave_size;
  Occupancy result{waves, waves * card.simds_per_compute_unit / waves_per_group, "registers"};
  // A one-wave workgroup needs no barrier, so only larger ones compete for the barrier slots.
  if (waves_per_group > 1 && card.max_groups_per_cu < result.groups_per_cu)
    result = {waves, card.max_groups_per_cu, "workgroup slots"};
  if (kernel.lds_bytes > 0) {
    const uint32_t by_lds = card.lds_bytes / round_up(kernel.lds_bytes, card.lds_granule);
    if (by_lds < result.groups_per_cu) result = {waves, by_lds, "LDS"};
  }
  return result;
}

}  // namespace fasim
