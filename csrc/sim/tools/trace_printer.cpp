#include "tools/trace_printer.h"

#include <algorithm>
#include <string>

namespace fasim::tools {
namespace {

// Every dword stands alone, as "s4=0000002a", "vcc_hi=0" or "v3[0]=0000002a" with the lane.
std::string register_name(const TraceWrite& write) {
  const std::string bank(write.bank);
  if (bank == "vcc" || bank == "exec") return bank + (write.index == 0 ? "_lo" : "_hi");
  return bank == "scc" ? bank : bank + std::to_string(write.index);
}

std::string text_of(const TraceWrite& write) {
  const std::string name = register_name(write);
  std::string text;
  for (uint32_t i = 0; i < write.lane_count; ++i) {
    char value[32];
    std::snprintf(value, sizeof(value), "=%08x", write.values[i]);
    const std::string lane = write.bank == "v" ? "[" + std::to_string(write.lanes[i]) + "]" : "";
    text += (i == 0 ? "" : " ") + name + lane + value;
  }
  return text;
}

}  // namespace

void TracePrinter::instruction(const TraceRecord& record) {
  if (workgroup_ && !std::ranges::equal(*workgroup_, record.workgroup)) return;
  if (wave_ && *wave_ != record.wave) return;
  std::fprintf(to_, "wg %u,%u,%u wave %u  %06llx  exec %016llx  %-56.*s", record.workgroup[0],
               record.workgroup[1], record.workgroup[2], record.wave,
               static_cast<unsigned long long>(record.pc - load_address_),
               static_cast<unsigned long long>(record.exec),
               static_cast<int>(record.disassembly.size()), record.disassembly.data());
  for (const TraceWrite& write : record.writes) std::fprintf(to_, " %s", text_of(write).c_str());
  std::fputc('\n', to_);
}

}  // namespace fasim::tools
