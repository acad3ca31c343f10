// Prints executed instructions: where, exec mask, disassembly, and the registers they wrote.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <vector>

#include "exec/launch.h"

namespace fasim::tools {

class TracePrinter : public TraceSink {
 public:
  // Prints only the given workgroup and wave, where given. Addresses are printed relative to
  // `load_address`, as in the disassembly.
  TracePrinter(std::FILE* to, uint64_t load_address, std::optional<std::vector<uint32_t>> workgroup,
               std::optional<uint32_t> wave)
      : to_(to), load_address_(load_address), workgroup_(std::move(workgroup)), wave_(wave) {}

  void instruction(const TraceRecord& record) override;

 private:
  std::FILE* const to_;
  const uint64_t load_address_;
  const std::optional<std::vector<uint32_t>> workgroup_;
  const std::optional<uint32_t> wave_;
};

}  // namespace fasim::tools
