#include "exec/modifiers.h"

#include <algorithm>

#include "check/fault.h"
#include "exec/float_bits.h"
#include "exec/lanes.h"

namespace fasim {
namespace {

using Select = Modifiers::Select;

// Calls fn(pass) for each 16 lanes.
template <class Fn>
void transform(const uint32_t* from, uint32_t* to, Fn fn) {
  for (int p = 0; p < kPasses; ++p) {
    store_vector(to + p * kPassLanes, fn(load_vector<u32x16>(from + p * kPassLanes)));
  }
}

bool is_packed(Kind kind) { return kind == Kind::pk16 || kind == Kind::pk_f16; }
bool is_word(Kind kind) { return kind == Kind::b16 || kind == Kind::f16; }
bool is_wide(Kind kind) { return dwords_of(kind) == 2; }

// Bits that hold the sign in an operand of this kind (in the high dword of a 64-bit one).
uint32_t sign_bits(Kind kind) {
  if (is_word(kind)) return 0x8000;
  if (is_packed(kind)) return 0x80008000;
  return 0x80000000;
}

void permute(const Modifiers& mods, uint64_t exec, const uint32_t* from, uint32_t* to) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t source = mods.dpp_lane[lane];
    const bool valid = (mods.dpp_in_range >> lane & 1) && (exec >> source & 1);
    to[lane] = valid ? from[source] : 0;
  }
}

void select_part(Select select, bool sext, const uint32_t* from, uint32_t* to) {
  if (select == Select::dword) {
    std::copy_n(from, kLanes, to);
    return;
  }
  const bool byte = select <= Select::byte_3;
  const uint32_t index =
      static_cast<uint32_t>(select) - (byte ? 0 : static_cast<uint32_t>(Select::word_0));
  const uint32_t width = byte ? 8 : 16, left = 32 - width - index * width, right = 32 - width;
  transform(from, to, [&](u32x16 v) {
    const u32x16 high = v << left;
    return sext ? as<u32x16>(as<i32x16>(high) >> static_cast<int>(right)) : high >> right;
  });
}

// Low half of the result from half `lo` of the source, high half from half `hi`.
void select_halves(bool lo, bool hi, const uint32_t* from, uint32_t* to) {
  transform(from, to, [&](u32x16 v) {
    const u32x16 low = lo ? v >> 16 : v & 0xffff, high = hi ? v & 0xffff0000 : v << 16;
    return low | high;
  });
}

void mix_source(const Modifiers& mods, int i, const uint32_t* from, uint32_t* to) {
  const bool half = mods.op_sel_hi >> i & 1, high = mods.op_sel >> i & 1;
  // neg_hi stands for abs in fma_mix.
  const bool abs = (mods.abs | mods.neg_hi) >> i & 1, neg = (mods.neg | mods.neg_lo) >> i & 1;
  transform(from, to, [&](u32x16 v) {
    if (half) v = as<u32x16>(half_to_float(high ? v >> 16 : v));
    if (abs) v &= 0x7fffffff;
    return neg ? v ^ 0x80000000 : v;
  });
}

void flush_row(Kind kind, uint32_t* row) {
  if (kind == Kind::f32 || kind == Kind::mix) {
    transform(row, row, [](u32x16 v) { return as<u32x16>(flush_denormals(as<f32x16>(v))); });
  } else if (kind == Kind::f16 || kind == Kind::f16_half || kind == Kind::pk_f16) {
    transform(row, row, flush_half_denormals);
  } else if (kind == Kind::f64) {
    for (int p = 0; p < kPassLanes * kPasses; p += kPassLanes) {
      F64::store(row + p, flush_denormals(F64::load(row + p)));
    }
  }
}

bool mode_flushes(const Wave& wave, const OpcodeRow& opcode, Kind kind) {
  if (!wave.special_mode || !opcode.has(OpcodeRow::kFloatMath)) return false;
  const bool single = kind == Kind::f32 || kind == Kind::mix;
  return single ? wave.mode.flush_f32() : wave.mode.flush_f16_f64();
}

// MODE.ieee = 0: a signalling NaN counts as a quiet one, so that it loses against a number in the
// minimum and maximum opcodes, the only ones that tell the two apart.
void quiet_row(Kind kind, uint32_t* row) {
  if (kind == Kind::f32 || kind == Kind::mix) {
    transform(row, row, [](u32x16 v) { return is_nan(as<f32x16>(v)) ? v | kF32Quiet : v; });
  } else if (kind == Kind::f16 || kind == Kind::pk_f16) {
    transform(row, row, [](u32x16 v) {
      const u16x32 bits = as<u16x32>(v);
      return as<u32x16>((bits & 0x7fff) > 0x7c00 ? bits | 0x0200 : bits);
    });
  } else if (kind == Kind::f64) {
    for (int p = 0; p < kPassLanes * kPasses; p += kPassLanes) {
      const u64x16 v = U64::load(row + p);
      U64::store(row + p, is_nan(as<f64x16>(v)) ? v | 0x0008000000000000 : v);
    }
  }
}

template <class V>
V clamp01(V v, bool nan_to_zero) {
  const V zero = 0.0f, one = 1.0f;
  V r = v > one ? one : (v < zero ? zero : v);
  return nan_to_zero ? (v != v ? zero : r) : r;
}

template <class V>
V scale(V v, uint8_t omod) {
  constexpr float kFactors[] = {1.0f, 2.0f, 4.0f, 0.5f};
  return v * V(kFactors[omod]);
}

}  // namespace

const uint32_t* modify_source(const Wave& wave, const Inst& inst, const Modifiers& mods, int i,
                              const uint32_t* row, uint32_t* buffer) {
  const Kind kind = inst.row->src[i];
  auto apply_mode = [&] {
    if (mode_flushes(wave, *inst.row, kind)) flush_row(kind, buffer);
    if (!wave.ieee && inst.row->has(OpcodeRow::kFloatMath)) quiet_row(kind, buffer);
  };
  if (kind == Kind::mix) {
    mix_source(mods, i, row, buffer);
    apply_mode();
    return buffer;
  }
  const int rows = is_wide(kind) ? 2 : 1;
  std::copy_n(row, rows * kRowWords, buffer);
  if (mods.dpp && i == 0) permute(mods, wave.exec(), row, buffer);
  if (mods.sdwa && i < 2) select_part(mods.src_select[i], mods.sext >> i & 1, buffer, buffer);
  const bool low = mods.op_sel >> i & 1;
  if (is_packed(kind)) {
    const bool high = mods.op_sel_hi >> i & 1;
    if (low || !high) select_halves(low, high, buffer, buffer);
    const uint32_t flip =
        (mods.neg_lo >> i & 1 ? 0x8000u : 0) | (mods.neg_hi >> i & 1 ? 0x80000000u : 0);
    if (flip) transform(buffer, buffer, [&](u32x16 v) { return v ^ flip; });
  } else if (is_word(kind) && low && !mods.sdwa) {
    select_halves(true, true, buffer, buffer);
  }
  uint32_t* const top = buffer + (rows - 1) * kRowWords;
  // The accumulator of v_dot2_f32_f16 is not packed: clang sets neg_lo and neg_hi to negate it.
  const uint32_t neg = mods.neg | (is_packed(kind) ? 0 : mods.neg_lo);
  if (mods.abs >> i & 1) transform(top, top, [&](u32x16 v) { return v & ~sign_bits(kind); });
  if (neg >> i & 1) transform(top, top, [&](u32x16 v) { return v ^ sign_bits(kind); });
  apply_mode();
  return buffer;
}

void modify_result(const Wave& wave, const OpcodeRow& opcode, const Modifiers& mods,
                   uint32_t* row) {
  const bool floating = mods.omod || (mods.clamp && !opcode.has(OpcodeRow::kSaturates));
  for (int lane = 0; floating && lane < kPassLanes * kPasses; lane += kPassLanes) {
    uint32_t* const at = row + lane;
    switch (opcode.dst) {
      case Kind::f32: {
        f32x16 v = scale(load_vector<f32x16>(at), mods.omod);
        store_vector(at, mods.clamp ? clamp01(v, wave.dx10_clamp) : v);
        break;
      }
      case Kind::f16:
      case Kind::f16_half:
      case Kind::f16_low:
      case Kind::f16_high: {
        f32x16 v = scale(F16::load(at), mods.omod);
        F16::store(at, mods.clamp ? clamp01(v, wave.dx10_clamp) : v);
        break;
      }
      case Kind::f64: {
        f64x16 v = scale(F64::load(at), mods.omod);
        F64::store(at, mods.clamp ? clamp01(v, wave.dx10_clamp) : v);
        break;
      }
      case Kind::pk_f16: {
        const u32x16 v = load_vector<u32x16>(at);
        const u32x16 low = float_to_half(clamp01(half_to_float(v), wave.dx10_clamp));
        const u32x16 high = float_to_half(clamp01(half_to_float(v >> 16), wave.dx10_clamp));
        store_vector(at, low | high << 16);
        break;
      }
      default:
        throw SimFault("clamp or omod on an opcode for which the simulator does not define it");
    }
  }
  if (mode_flushes(wave, opcode, opcode.dst)) flush_row(opcode.dst, row);
}

void merge_result(Kind kind, const Modifiers& mods, const uint32_t* old, uint32_t* row) {
  const bool high = kind == Kind::f16_high ||
                    ((kind == Kind::f16_half || kind == Kind::b16_half) && (mods.op_sel >> 3 & 1));
  const bool keeps = kind >= Kind::b16_half && kind <= Kind::f16_high;
  if (!keeps && (!mods.sdwa || mods.dst_select == Select::dword)) return;
  uint32_t shift = high ? 16 : 0, width = 16;
  if (mods.sdwa && mods.dst_select != Select::dword) {
    const bool byte = mods.dst_select <= Select::byte_3;
    width = byte ? 8 : 16;
    const auto select = static_cast<uint32_t>(mods.dst_select);
    shift = byte ? select * 8 : (select - static_cast<uint32_t>(Select::word_0)) * 16;
  }
  const uint32_t field = (width == 8 ? 0xffu : 0xffffu) << shift;
  for (int p = 0; p < kPassLanes * kPasses; p += kPassLanes) {
    const u32x16 value = load_vector<u32x16>(row + p) << shift & field;
    const u32x16 before = load_vector<u32x16>(old + p) & ~field;
    if (keeps || mods.dst_unused == Modifiers::Unused::preserve) {
      store_vector(row + p, value | before);
    } else if (mods.dst_unused == Modifiers::Unused::pad) {
      store_vector(row + p, value);
    } else {
      // Sign-extend upwards; the bits below the field are 0.
      const int up = static_cast<int>(32 - width - shift);
      store_vector(row + p, as<u32x16>(as<i32x16>(value << up) >> up));
    }
  }
}

}  // namespace fasim
