#include "timing/valu_rates.h"

#include <algorithm>
#include <string_view>

namespace fasim {
namespace {

// Opcodes that begin alike and take the same time. `wide` is for forms with a 64-bit operand.
struct Rate {
  std::string_view prefix;
  uint32_t CardTiming::* narrow;
  uint32_t CardTiming::* wide;
};

constexpr auto kFull = &CardTiming::valu_full, kHalf = &CardTiming::valu_half,
               kQuarter = &CardTiming::valu_quarter, kMul32 = &CardTiming::valu_mul32,
               kConvert = &CardTiming::valu_convert, kWideQuarter = &CardTiming::valu_f64_quarter;

// The first row that fits decides. After CLRX's GcnTimings; configs/gfx906.toml says what was
// fitted.
constexpr Rate kRates[] = {
    {"v_exp_", kQuarter, kWideQuarter},
    {"v_log_", kQuarter, kWideQuarter},
    {"v_rcp_", kQuarter, kWideQuarter},
    {"v_rsq_", kQuarter, kWideQuarter},
    {"v_sqrt_", kQuarter, kWideQuarter},
    {"v_sin_", kQuarter, kWideQuarter},
    {"v_cos_", kQuarter, kWideQuarter},
    {"v_div_", kQuarter, kWideQuarter},
    {"v_mul_lo_u32", kMul32, kMul32},
    {"v_mul_hi_u32_u24", kFull, kFull},
    {"v_mul_hi_i32_i24", kFull, kFull},
    {"v_mul_hi_", kMul32, kMul32},
    {"v_mad_u64_u32", kMul32, kMul32},
    {"v_mad_i64_i32", kMul32, kMul32},
    {"v_cvt_", kConvert, kHalf},
    {"v_swap_b32", kHalf, kHalf},
    {"", kFull, kHalf},
};

bool is_wide(Kind kind) { return kind == Kind::f64 || kind == Kind::b64; }

}  // namespace

uint32_t valu_clocks(const OpcodeRow& row, const CardTiming& card) {
  const Rate& rate = *std::ranges::find_if(
      kRates, [&](const Rate& rate) { return row.name.starts_with(rate.prefix); });
  const bool wide = is_wide(row.dst) || std::ranges::any_of(row.src, is_wide);
  return card.*(wide ? rate.wide : rate.narrow);
}

}  // namespace fasim
