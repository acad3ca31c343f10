#include "check/register_state.h"

#include "check/text.h"

namespace fasim {

void RegisterState::reset(uint32_t defined_sgprs, uint32_t defined_vgprs, uint64_t exec,
                          const Program& program) {
  ready.fill(~exec);
  full.fill(exec ? 0 : ~0ull);
  if (program.spare_row >= 0) set_ready(static_cast<uint16_t>(program.spare_row), ~0ull);
  loading.fill(0);
  loading_scalars.fill(0);
  vgpr_origin.fill(Origin());
  sgpr_origin.fill(Origin());
  for (uint32_t i = 0; i < defined_vgprs; ++i) set_ready(static_cast<uint16_t>(i), ~0ull);
  dirty.fill(0);
  for (uint32_t i = 0; i < kScalars; ++i) {
    const bool defined = i < defined_sgprs || i == 126 || i == 127;
    undefined[i] = defined ? 0 : ~0u;
    // Registers that no instruction names would only collide with others in `any_dirty`.
    if (!defined) dirty[i / 64] |= (1ull << (i % 64)) & program.named_scalars[i / 64];
  }
  any_dirty = fold_scalars(dirty);
}

void RegisterState::set_loading(uint16_t scalar, bool is) {
  const uint64_t bit = 1ull << (scalar % 64);
  uint64_t& word = loading_scalars[scalar / 64];
  word = is ? word | bit : word & ~bit;
  set_undefined(scalar, undefined[scalar], sgpr_origin[scalar]);
}

void RegisterState::set_undefined(uint16_t scalar, uint32_t bits, Origin origin) {
  undefined[scalar] = bits;
  if (bits) sgpr_origin[scalar] = origin;
  const uint64_t bit = 1ull << (scalar % 64);
  uint64_t& word = dirty[scalar / 64];
  word = bits || is_loading(scalar) ? word | bit : word & ~bit;
  any_dirty = fold_scalars(dirty);
}

Origin RegisterState::origin_of_vgpr(uint16_t row) const {
  const Origin& o = vgpr_origin[row];
  return o.from == Origin::From::itself ? Origin{Origin::From::vgpr, row} : o;
}
Origin RegisterState::origin_of_scalar(uint16_t scalar) const {
  const Origin& o = sgpr_origin[scalar];
  return o.from == Origin::From::itself ? Origin{Origin::From::sgpr, scalar} : o;
}

std::string scalar_name(uint32_t number) {
  switch (number) {
    case 102:
      return "flat_scratch_lo";
    case 103:
      return "flat_scratch_hi";
    case 104:
      return "xnack_mask_lo";
    case 105:
      return "xnack_mask_hi";
    case 106:
      return "vcc_lo";
    case 107:
      return "vcc_hi";
    case 124:
      return "m0";
    case kSccNumber:
      return "scc";
    case 126:
      return "exec_lo";
    case 127:
      return "exec_hi";
    default:
      return text("s%u", number);
  }
}

std::string describe(const Origin& origin, const std::string& name) {
  std::string root;
  switch (origin.from) {
    case Origin::From::itself:
      root = name;
      break;
    case Origin::From::vgpr:
      root = text("v%u", origin.where);
      break;
    case Origin::From::sgpr:
      root = scalar_name(origin.where);
      break;
    case Origin::From::lds:
      return text("it derives from LDS byte %#x, which was never written", origin.where);
  }
  return root == name ? "it was never written"
                      : "it derives from " + root + ", which was never written";
}

}  // namespace fasim
