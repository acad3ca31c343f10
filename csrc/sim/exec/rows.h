// The opcode tables, one for each file of semantics.
#pragma once

#include <array>
#include <span>

#include "isa/opcodes.h"

namespace fasim {

using Rows = std::span<const OpcodeRow>;

Rows valu_f32_rows();
Rows valu_int_rows();
Rows valu_int16_rows();
Rows valu_int64_rows();
Rows valu_f16_rows();
Rows valu_f64_rows();
Rows valu_packed_rows();
Rows valu_convert_rows();
Rows transcendental_rows();
Rows division_rows();
Rows compare_rows();
Rows cross_lane_rows();
Rows gpr_index_rows();
Rows salu_rows();
Rows salu_compare_rows();
Rows flow_rows();
Rows lds_rows();
Rows lds_atomic_rows();
Rows vmem_rows();
Rows vmem_atomic_rows();
Rows smem_rows();

inline std::array<Rows, 21> opcode_tables() {
  return {valu_f32_rows(),       valu_int_rows(),     valu_int16_rows(),  valu_int64_rows(),
          valu_f16_rows(),       valu_f64_rows(),     valu_packed_rows(), valu_convert_rows(),
          transcendental_rows(), division_rows(),     compare_rows(),     cross_lane_rows(),
          salu_rows(),           salu_compare_rows(), flow_rows(),        lds_rows(),
          lds_atomic_rows(),     vmem_rows(),         vmem_atomic_rows(), smem_rows(),
          gpr_index_rows()};
}

}  // namespace fasim
