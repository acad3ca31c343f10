#include "isa/dpp.h"

#include "isa/operand_text.h"

namespace fasim {
namespace {

constexpr int kRow = 16;

// Source lane of `lane`, or -1 where the control has none.
int source_lane(std::string_view name, int n, const std::vector<int64_t>& list, int lane) {
  const int row = lane & ~(kRow - 1), in_row = lane & (kRow - 1);
  if (name == "quad_perm") return (lane & ~3) | static_cast<int>(list[lane & 3]);
  if (name == "row_shl") return in_row + n < kRow ? lane + n : -1;
  if (name == "row_shr") return in_row - n >= 0 ? lane - n : -1;
  if (name == "row_ror") return row | ((in_row - n) & (kRow - 1));
  if (name == "wave_shl") return lane + 1 < 64 ? lane + 1 : -1;
  if (name == "wave_shr") return lane - 1;
  if (name == "wave_rol") return (lane + 1) & 63;
  if (name == "wave_ror") return (lane - 1) & 63;
  if (name == "row_mirror") return row | (kRow - 1 - in_row);
  if (name == "row_half_mirror") return (lane & ~7) | (7 - (lane & 7));
  // Lane 15 of each row feeds the next row; lane 31 feeds the upper half of the wave.
  if (name == "row_bcast" && n == 15) return row - 1;
  return lane >= 32 ? 31 : -1;
}

bool known(std::string_view name, int n, size_t list_size) {
  if (name == "quad_perm") return list_size == 4;
  if (name == "row_shl" || name == "row_shr" || name == "row_ror") return n >= 1 && n <= 15;
  if (name == "row_bcast") return n == 15 || n == 31;
  return name == "wave_shl" || name == "wave_shr" || name == "wave_rol" || name == "wave_ror" ||
         name == "row_mirror" || name == "row_half_mirror";
}

}  // namespace

bool apply_dpp_control(std::string_view control, Modifiers& modifiers) {
  const size_t colon = std::min(control.find(':'), control.size());
  const std::string_view name = control.substr(0, colon);
  const std::string_view value = control.substr(std::min(colon + 1, control.size()));
  const std::vector<int64_t> list = parse_list(value);
  const int n = list.size() == 1 ? static_cast<int>(list[0]) : 0;
  if (!known(name, n, list.size())) return false;
  modifiers.dpp = true;
  modifiers.dpp_in_range = 0;
  for (int lane = 0; lane < 64; ++lane) {
    const int source = source_lane(name, n, list, lane);
    modifiers.dpp_lane[lane] = static_cast<uint8_t>(source < 0 ? lane : source);
    if (source >= 0) modifiers.dpp_in_range |= 1ull << lane;
  }
  return true;
}

uint64_t dpp_lane_mask(unsigned row_mask, unsigned bank_mask) {
  uint64_t mask = 0;
  for (int lane = 0; lane < 64; ++lane) {
    if ((row_mask >> (lane / kRow) & 1) && (bank_mask >> (lane % kRow / 4) & 1))
      mask |= 1ull << lane;
  }
  return mask;
}

}  // namespace fasim
