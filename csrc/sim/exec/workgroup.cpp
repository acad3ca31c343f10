// Runs the waves of a workgroup between its barriers.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "check/text.h"
#include "exec/initial_state.h"
#include "exec/launch.h"
#include "exec/register_check.h"
#include "exec/trace.h"
#include "exec/wave.h"

namespace fasim {
namespace {

constexpr uint32_t kMaxLdsBytes = 65536, kMaxThreads = 1024;
// A wave that spins on a flag of another wave must let that one run.
constexpr uint64_t kTimeSlice = 1 << 16;

uint64_t order_seed() {
  const char* value = std::getenv("FLASHATTN_SIM_SEED");
  return value ? std::strtoull(value, nullptr, 0) : 0;
}

void require_launchable(const Launch& launch) {
  auto refuse = [&](const std::string& reason) {
    SimFault fault(reason);
    fault.kernel = launch.kernel_name;
    fault.compose();
    throw fault;
  };
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || threads > kMaxThreads) {
    refuse(text("a workgroup has %u x %u x %u work-items; 1 to %u are allowed", launch.block[0],
                launch.block[1], launch.block[2], kMaxThreads));
  }
  if (launch.lds_bytes > kMaxLdsBytes) {
    refuse(text("the launch needs %u bytes of LDS; a workgroup has at most %u", launch.lds_bytes,
                kMaxLdsBytes));
  }
  const FloatMode mode{launch.descriptor.float_mode()};
  if (!mode.round_nearest_even()) {
    refuse(text(
        "rounding mode %#x in the kernel descriptor; only round to nearest even (0) is simulated",
        mode.bits & 0xf));
  }
  if (!launch.program->find(launch.entry)) {
    refuse(text("no instruction starts at the kernel's entry %#llx",
                static_cast<unsigned long long>(launch.entry)));
  }
}

}  // namespace

struct WorkgroupRunner::State {
  explicit State(const Launch& l)
      : launch(l),
        registers(*l.program, l.descriptor.vgprs(), allocated_sgprs(l.descriptor)),
        port(l.memory),
        memory(l),
        seed(order_seed()) {
    // clang loads three trailing dwords as four: the segment is 16-byte aligned and padded.
    port.add_launch_range(launch.kernarg, (launch.kernarg_size + 15ull) / 16 * 16,
                          "kernarg segment");
    if (launch.dispatch_packet)
      port.add_launch_range(launch.dispatch_packet, 64, "dispatch packet");
    order.resize(memory.waves.size());
  }

  template <bool kTraced>
  void run_wave(Wave& wave, TraceSink* sink);
  void run_slice(Wave& wave, TraceSink* sink);
  [[noreturn]] void rethrow(SimFault& fault, const Wave& wave) const;
  void choose_order(uint64_t linear_id);

  const Launch launch;
  RegisterCheck registers;
  MemoryPort port;
  WorkgroupMemory memory;
  const uint64_t seed;
  std::vector<uint32_t> order;
  uint32_t workgroup[3] = {0, 0, 0};
};

template <bool kTraced>
void WorkgroupRunner::State::run_wave(Wave& wave, TraceSink* sink) {
  for (uint64_t left = kTimeSlice; left && wave.state == Wave::State::running; --left) {
    const Inst& inst = *wave.pc++;
    inst.run(wave, inst);
    ++wave.executed[static_cast<size_t>(inst.cls)];
    if constexpr (kTraced) trace_instruction(wave, inst, workgroup, *sink);
  }
}

void WorkgroupRunner::State::run_slice(Wave& wave, TraceSink* sink) {
  try {
    if (sink) {
      run_wave<true>(wave, sink);
    } else {
      run_wave<false>(wave, nullptr);
    }
  } catch (SimFault& fault) {
    rethrow(fault, wave);
  }
}

void WorkgroupRunner::State::rethrow(SimFault& fault, const Wave& wave) const {
  // A faulting instruction has not moved the pc away from its successor.
  const Inst& inst = *(wave.pc - 1);
  fault.kernel = launch.kernel_name;
  if (fault.disassembly.empty()) {
    fault.pc = launch.program->address_of(inst);
    fault.disassembly = launch.program->text_of(inst);
  }
  std::copy_n(workgroup, 3, fault.workgroup);
  fault.wave = static_cast<int>(wave.index);
  fault.compose();
  throw fault;
}

void WorkgroupRunner::State::choose_order(uint64_t linear_id) {
  std::iota(order.begin(), order.end(), 0u);
  if (seed)
    std::shuffle(order.begin(), order.end(),
                 std::mt19937_64(seed * 0x9e3779b97f4a7c15 + linear_id));
}

WorkgroupRunner::WorkgroupRunner(const Launch& launch) {
  require_launchable(launch);
  state_ = std::make_unique<State>(launch);
  try {
    state_->registers.require(*launch.program->find(launch.entry));
  } catch (SimFault& fault) {
    fault.kernel = launch.kernel_name;
    fault.compose();
    throw;
  }
}
WorkgroupRunner::~WorkgroupRunner() = default;

WorkgroupStats WorkgroupRunner::run(uint32_t wx, uint32_t wy, uint32_t wz, TraceSink* trace) {
  State& s = *state_;
  const uint32_t id[3] = {wx, wy, wz};
  std::copy_n(id, 3, s.workgroup);
  s.memory.reset(s.launch, id, s.port, s.registers);
  s.choose_order((uint64_t{wz} * s.launch.grid[1] + wy) * s.launch.grid[0] + wx);

  std::vector<Wave>& waves = s.memory.waves;
  for (;;) {
    for (uint32_t i : s.order) {
      if (waves[i].state == Wave::State::running) s.run_slice(waves[i], trace);
    }
    auto in_state = [&](Wave::State state) {
      return std::ranges::count(waves, state, &Wave::state);
    };
    if (in_state(Wave::State::running)) continue;
    // Waves that ended count as arrived.
    if (!in_state(Wave::State::at_barrier)) break;
    for (Wave& wave : waves) {
      if (wave.state == Wave::State::at_barrier) wave.state = Wave::State::running;
    }
  }

  WorkgroupStats stats;
  for (const Wave& wave : waves) {
    for (size_t i = 0; i < kInstClasses; ++i) stats.by_class[i] += wave.executed[i];
    stats.wave_instructions += wave.instructions();
  }
  return stats;
}

}  // namespace fasim
