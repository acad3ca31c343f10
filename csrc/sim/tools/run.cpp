// flashattn-sim run: one launch of one kernel.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "device/card_facts.h"
#include "device/device.h"
#include "device/launch_limits.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/kernel_arguments.h"
#include "tools/trace_printer.h"

namespace fasim::tools {

const char* const kRunHelp =
    "flashattn-sim run FILE KERNEL [options]\n"
    "  --grid X[,Y[,Z]]     workgroups (default 1)\n"
    "  --block X[,Y[,Z]]    work-items of a workgroup (default 64)\n"
    "  --lds N              bytes of dynamic LDS (default 0)\n"
    "  --arg SPEC           one for each kernel argument, in order:\n";

namespace {

const Kernel& require_kernel(const CodeObject& object, const std::string& name) {
  if (const Kernel* kernel = object.kernel(name)) return *kernel;
  std::string list;
  for (const auto& [known, kernel] : object.kernels()) list += "\n  " + known;
  throw UsageError("no kernel " + name + " in the file; it has:" + list);
}

LaunchShape parse_shape(const CommandLine& line) {
  LaunchShape shape;
  const std::vector<uint32_t> grid = parse_extent(line.value("--grid", "1"), "--grid");
  const std::vector<uint32_t> block = parse_extent(line.value("--block", "64"), "--block");
  std::copy(grid.begin(), grid.end(), shape.grid);
  std::copy(block.begin(), block.end(), shape.block);
  const uint64_t lds = parse_number(line.value("--lds", "0"), "--lds");
  if (lds > kGfx906.lds_bytes)
    throw UsageError("--lds " + std::to_string(lds) + ", allowed: 0 to " +
                     std::to_string(kGfx906.lds_bytes));
  shape.dynamic_lds = static_cast<uint32_t>(lds);
  return shape;
}

std::optional<TracePrinter> parse_trace(const CommandLine& line, uint64_t load_address) {
  std::optional<std::vector<uint32_t>> group;
  std::optional<uint32_t> wave;
  if (line.has("--trace-group"))
    group = parse_extent(line.value("--trace-group", ""), "--trace-group", /*missing=*/0);
  if (line.has("--trace-wave"))
    wave = static_cast<uint32_t>(parse_number(line.value("--trace-wave", ""), "--trace-wave"));
  if (!line.has("--trace") && !group && !wave) return std::nullopt;
  return std::make_optional<TracePrinter>(stdout, load_address, group, wave);
}

void print(const WorkgroupStats& stats, double seconds) {
  std::printf("wave instructions: %llu (%.1f million a second)\n",
              static_cast<unsigned long long>(stats.wave_instructions),
              static_cast<double>(stats.wave_instructions) / seconds / 1e6);
  for (size_t i = 0; i < kInstClasses; ++i)
    std::printf("  %-7s %llu\n", kInstClassNames[i],
                static_cast<unsigned long long>(stats.by_class[i]));
}

}  // namespace

int run(const std::vector<std::string>& words) {
  const CommandLine line(
      words, {"--grid", "--block", "--lds", "--arg", "--trace-group", "--trace-wave"}, {"--trace"});
  const std::vector<std::string> names = line.positional({"FILE", "KERNEL"});
  Device device(card_facts().card, card_facts().timing);
  const CodeObject object(read_file(names[0]), device.card(), device.memory());
  const Kernel& kernel = require_kernel(object, names[1]);
  const LaunchShape shape = parse_shape(line);
  if (const auto broken = broken_limit(device.card(), kernel.metadata, shape))
    throw UsageError(broken->text);
  KernelArguments arguments(device.memory());
  const std::vector<uint8_t> packed = arguments.pack(line.values("--arg"), kernel.metadata);
  std::optional<TracePrinter> trace = parse_trace(line, object.program().load_address);
  const auto start = std::chrono::steady_clock::now();
  const WorkgroupStats stats = device.launch(kernel, shape, packed, trace ? &*trace : nullptr);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  arguments.write_outputs();
  print(stats, elapsed.count());
  return 0;
}

}  // namespace fasim::tools
