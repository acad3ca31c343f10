// The profile of a launch as JSON, for tools outside the library.
#include <llvm/Support/JSON.h>
#include <llvm/Support/raw_ostream.h>

#include "device/timed_launch.h"

namespace fasim {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

llvm::json::Object causes_of(const CuCounters& cus) {
  llvm::json::Object causes;
  for (size_t i = 0; i < kCauses; ++i) causes[kCauseNames[i]] = cus.causes[i];
  return causes;
}

llvm::json::Object instructions_of(const CuCounters& cus) {
  llvm::json::Object counts;
  for (size_t i = 0; i < kInstClasses; ++i) counts[kInstClassNames[i]] = cus.instructions[i];
  return counts;
}

// Under the names and in the units of rocprof's derived metrics: per cent and kilobytes.
llvm::json::Object counters_of(const LaunchProfile& p) {
  const CuCounters& cus = p.timed.cus;
  const MemoryCounters& memory = p.timed.memory;
  uint64_t simd_clocks = 0;
  for (uint64_t clocks : cus.causes) simd_clocks += clocks;
  const uint64_t cu_clocks = simd_clocks / kSimds;
  const uint64_t valu = cus.instructions[static_cast<size_t>(InstClass::valu)];
  return llvm::json::Object{
      {"VALUBusy", 100 * share(cus.causes[static_cast<size_t>(Cause::valu)], simd_clocks)},
      {"VALUUtilization", 100 * share(cus.lanes_active, valu * kLanes)},
      {"SALUBusy",
       100 * share(4 * cus.instructions[static_cast<size_t>(InstClass::salu)], simd_clocks)},
      {"LDSBankConflict", 100 * share(cus.lds_conflict_clocks, cu_clocks)},
      {"LDSBusy", 100 * share(cus.lds_busy_clocks, cu_clocks)},
      {"FetchSize", static_cast<double>(memory.hbm_read_bytes) / 1024},
      {"WriteSize", static_cast<double>(memory.hbm_write_bytes) / 1024},
      {"L2CacheHit", 100 * share(memory.l2_hits, memory.l2_requests)},
      {"L1CacheHit", 100 * share(cus.l1_hits, cus.l1_requests)},
      {"MemUnitStalled", 100 * share(cus.vmem_stalled_clocks, cu_clocks)},
  };
}

// A row an instruction: offset in .text, text, SIMD clocks, clocks of LDS bank conflicts.
llvm::json::Array instructions_of(const LaunchProfile& p) {
  llvm::json::Array rows;
  for (const InstructionCost& c : p.by_instruction)
    rows.push_back(
        llvm::json::Array{c.text_offset, c.instruction, c.clocks, c.lds_conflict_clocks});
  return rows;
}

// A row an entry: SIMD, wave, clock, clocks, kind.
llvm::json::Array timeline_of(const KernelTime& timed) {
  llvm::json::Array rows;
  for (const TimelineEntry& e : timed.timeline)
    rows.push_back(llvm::json::Array{e.simd, e.wave, e.clock, e.clocks, e.kind});
  return rows;
}

}  // namespace

std::string to_json(const LaunchProfile& p) {
  const auto triple = [](const uint32_t(&v)[3]) { return llvm::json::Array{v[0], v[1], v[2]}; };
  const MemoryCounters& memory = p.timed.memory;
  llvm::json::Object object{
      {"kernel", p.kernel},
      {"grid", triple(p.grid)},
      {"block", triple(p.block)},
      {"card", llvm::json::Object{{"name", p.card.name},
                                  {"compute_units", p.card.compute_units},
                                  {"clock_mhz", p.card.clock_mhz},
                                  {"hbm_gbps", p.card.hbm_gbps},
                                  {"launch_us", p.card.launch_us}}},
      {"vgprs", p.resources.vgprs},
      {"sgprs", p.resources.sgprs},
      {"lds_bytes", p.resources.lds_bytes},
      {"occupancy", llvm::json::Object{{"groups_per_cu", p.occupancy.groups_per_cu},
                                       {"waves_per_simd", p.occupancy.waves_per_simd},
                                       {"limited_by", p.occupancy.limited_by}}},
      {"groups", p.groups},
      {"groups_timed", p.timed.groups},
      {"clocks", p.clocks},
      {"clocks_timed", p.timed.clocks},
      {"milliseconds", p.milliseconds()},
      {"sampling_error", p.sampling_error},
      {"wave_instructions", p.instructions},
      {"wave_instructions_timed", p.timed.instructions},
      {"causes", causes_of(p.timed.cus)},
      {"instructions", instructions_of(p.timed.cus)},
      {"counters", counters_of(p)},
      {"bytes", llvm::json::Object{{"l1", p.timed.cus.l1_requests * p.card.line_bytes},
                                   {"l2", memory.l2_requests * p.card.line_bytes},
                                   {"hbm_read", memory.hbm_read_bytes},
                                   {"hbm_write", memory.hbm_write_bytes}}},
      {"bytes_of_launch", llvm::json::Object{{"l1", p.bytes.l1},
                                             {"l2", p.bytes.l2},
                                             {"hbm_read", p.bytes.hbm_read},
                                             {"hbm_write", p.bytes.hbm_write}}},
      {"lds_conflict_clocks", p.timed.cus.lds_conflict_clocks},
      {"by_instruction", instructions_of(p)},
  };
  if (!p.timed.timeline.empty()) object["timeline"] = timeline_of(p.timed);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  return text;
}

}  // namespace fasim
