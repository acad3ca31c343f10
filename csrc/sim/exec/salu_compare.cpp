// Scalar compares and the opcodes that combine a mask with EXEC.
#include "exec/rows.h"
#include "exec/scalar.h"

namespace fasim {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;

// dst = old EXEC; EXEC = f(source, EXEC); SCC = EXEC is not 0.
template <class Fn>
void run_saveexec(Wave& wave, const Inst& inst) {
  const u64 source = read_scalar64(wave, inst.src[0]), exec = wave.exec();
  const u64 result = Fn{}(source, exec);
  wave.write64(inst.dst.index, exec);
  wave.write64(kExec, result);
  wave.scc = result != 0;
}
// The same, but dst receives the new EXEC.
template <class Fn>
void run_wrexec(Wave& wave, const Inst& inst) {
  const u64 result = Fn{}(read_scalar64(wave, inst.src[0]), wave.exec());
  wave.write64(inst.dst.index, result);
  wave.write64(kExec, result);
  wave.scc = result != 0;
}

constexpr OpcodeRow exec_row(std::string_view name, RunFunction run) {
  return {.name = name,
          .run = run,
          .cls = InstClass::salu,
          .flags = OpcodeRow::kWritesExec | OpcodeRow::kWritesScc,
          .dst = Kind::b64,
          .src = {Kind::b64}};
}
template <class Fn>
constexpr OpcodeRow saveexec(std::string_view name, Fn) {
  return exec_row(name, &run_saveexec<Fn>);
}
template <class Fn>
constexpr OpcodeRow wrexec(std::string_view name, Fn) {
  return exec_row(name, &run_wrexec<Fn>);
}

constexpr OpcodeRow kRows[] = {
    salu<Scc(i32, i32)>("s_cmp_eq_i32", [](i32 a, i32 b) { return a == b; }),
    salu<Scc(i32, i32)>("s_cmp_lg_i32", [](i32 a, i32 b) { return a != b; }),
    salu<Scc(i32, i32)>("s_cmp_gt_i32", [](i32 a, i32 b) { return a > b; }),
    salu<Scc(i32, i32)>("s_cmp_ge_i32", [](i32 a, i32 b) { return a >= b; }),
    salu<Scc(i32, i32)>("s_cmp_lt_i32", [](i32 a, i32 b) { return a < b; }),
    salu<Scc(i32, i32)>("s_cmp_le_i32", [](i32 a, i32 b) { return a <= b; }),
    salu<Scc(u32, u32)>("s_cmp_eq_u32", [](u32 a, u32 b) { return a == b; }),
    salu<Scc(u32, u32)>("s_cmp_lg_u32", [](u32 a, u32 b) { return a != b; }),
    salu<Scc(u32, u32)>("s_cmp_gt_u32", [](u32 a, u32 b) { return a > b; }),
    salu<Scc(u32, u32)>("s_cmp_ge_u32", [](u32 a, u32 b) { return a >= b; }),
    salu<Scc(u32, u32)>("s_cmp_lt_u32", [](u32 a, u32 b) { return a < b; }),
    salu<Scc(u32, u32)>("s_cmp_le_u32", [](u32 a, u32 b) { return a <= b; }),
    salu<Scc(u64, u64)>("s_cmp_eq_u64", [](u64 a, u64 b) { return a == b; }),
    salu<Scc(u64, u64)>("s_cmp_lg_u64", [](u64 a, u64 b) { return a != b; }),
    salu<Scc(u32, u32)>("s_bitcmp0_b32", [](u32 a, u32 n) { return (a >> (n & 31) & 1) == 0; }),
    salu<Scc(u32, u32)>("s_bitcmp1_b32", [](u32 a, u32 n) { return (a >> (n & 31) & 1) == 1; }),
    salu<Scc(u64, u32)>("s_bitcmp0_b64", [](u64 a, u32 n) { return (a >> (n & 63) & 1) == 0; }),
    salu<Scc(u64, u32)>("s_bitcmp1_b64", [](u64 a, u32 n) { return (a >> (n & 63) & 1) == 1; }),

    salu<Scc(i32, Simm16)>("s_cmpk_eq_i32", [](i32 a, i32 k) { return a == k; }),
    salu<Scc(i32, Simm16)>("s_cmpk_lg_i32", [](i32 a, i32 k) { return a != k; }),
    salu<Scc(i32, Simm16)>("s_cmpk_gt_i32", [](i32 a, i32 k) { return a > k; }),
    salu<Scc(i32, Simm16)>("s_cmpk_ge_i32", [](i32 a, i32 k) { return a >= k; }),
    salu<Scc(i32, Simm16)>("s_cmpk_lt_i32", [](i32 a, i32 k) { return a < k; }),
    salu<Scc(i32, Simm16)>("s_cmpk_le_i32", [](i32 a, i32 k) { return a <= k; }),
    // The unsigned forms zero-extend their constant.
    salu<Scc(u32, Simm16)>("s_cmpk_eq_u32",
                           [](u32 a, i32 k) { return a == static_cast<uint16_t>(k); }),
    salu<Scc(u32, Simm16)>("s_cmpk_lg_u32",
                           [](u32 a, i32 k) { return a != static_cast<uint16_t>(k); }),
    salu<Scc(u32, Simm16)>("s_cmpk_gt_u32",
                           [](u32 a, i32 k) { return a > static_cast<uint16_t>(k); }),
    salu<Scc(u32, Simm16)>("s_cmpk_ge_u32",
                           [](u32 a, i32 k) { return a >= static_cast<uint16_t>(k); }),
    salu<Scc(u32, Simm16)>("s_cmpk_lt_u32",
                           [](u32 a, i32 k) { return a < static_cast<uint16_t>(k); }),
    salu<Scc(u32, Simm16)>("s_cmpk_le_u32",
                           [](u32 a, i32 k) { return a <= static_cast<uint16_t>(k); }),

    saveexec("s_and_saveexec_b64", [](u64 s, u64 exec) { return s & exec; }),
    saveexec("s_or_saveexec_b64", [](u64 s, u64 exec) { return s | exec; }),
    saveexec("s_xor_saveexec_b64", [](u64 s, u64 exec) { return s ^ exec; }),
    saveexec("s_andn2_saveexec_b64", [](u64 s, u64 exec) { return s & ~exec; }),
    saveexec("s_orn2_saveexec_b64", [](u64 s, u64 exec) { return s | ~exec; }),
    saveexec("s_nand_saveexec_b64", [](u64 s, u64 exec) { return ~(s & exec); }),
    saveexec("s_nor_saveexec_b64", [](u64 s, u64 exec) { return ~(s | exec); }),
    saveexec("s_xnor_saveexec_b64", [](u64 s, u64 exec) { return ~(s ^ exec); }),
    saveexec("s_andn1_saveexec_b64", [](u64 s, u64 exec) { return ~s & exec; }),
    saveexec("s_orn1_saveexec_b64", [](u64 s, u64 exec) { return ~s | exec; }),
    wrexec("s_andn1_wrexec_b64", [](u64 s, u64 exec) { return ~s & exec; }),
    wrexec("s_andn2_wrexec_b64", [](u64 s, u64 exec) { return s & ~exec; }),
};

}  // namespace

Rows salu_compare_rows() { return kRows; }

}  // namespace fasim
