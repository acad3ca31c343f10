// flashattn-sim info: the kernels of a file and what they use.
#include <algorithm>
#include <cstdio>

#include "device/code_object.h"
#include "device/occupancy.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/kernel_arguments.h"

namespace fasim::tools {
namespace {

void print(const Kernel& kernel) {
  const KernelMetadata& m = kernel.metadata;
  const Occupancy fit =
      occupancy(kGfx906, {m.vgprs, m.sgprs, m.group_segment_bytes, m.max_group_threads});
  const uint32_t waves = fit.groups_per_cu * ((m.max_group_threads + 63) / 64);
  std::printf("%s\n", m.name.c_str());
  std::printf("  VGPR %u  SGPR %u  LDS %u  scratch %u%s  spills VGPR %u SGPR %u\n", m.vgprs,
              m.sgprs, m.group_segment_bytes, m.private_segment_bytes, m.dynamic_stack ? "+" : "",
              m.vgpr_spills, m.sgpr_spills);
  std::printf("  up to %u threads a workgroup, %u argument bytes in %zu arguments\n",
              m.max_group_threads, m.explicit_bytes(),
              static_cast<size_t>(std::ranges::count(m.arguments, false, &KernelArgument::hidden)));
  std::printf(
      "  occupancy at %u threads: %u workgroups and %u waves a CU (limited by %s); "
      "registers allow %u waves a SIMD\n",
      m.max_group_threads, fit.groups_per_cu, waves, fit.limited_by, fit.waves_per_simd);
}

}  // namespace

int info(const std::vector<std::string>& words) {
  const CommandLine line(words, {}, {});
  AddressSpace memory;
  const CodeObject object(read_file(line.positional({"FILE"})[0]), kGfx906, memory);
  std::printf("code object version %d for %s, %zu kernels\n", object.abi_version(), kGfx906.arch,
              object.kernels().size());
  for (const auto& [name, kernel] : object.kernels()) print(kernel);
  return 0;
}

}  // namespace fasim::tools
