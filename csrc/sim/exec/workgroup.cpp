// Runs the waves of a workgroup between its barriers.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "check/text.h"
#include "check/wave_checks.h"
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
// About a minute of host time; a wave of the longest useful kernels executes some ten million.
constexpr uint64_t kDefaultWatchdog = 1ull << 32;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 0) : otherwise;
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
        seed(from_environment("FLASHATTN_SIM_SEED", 0)),
        watchdog(from_environment("FLASHATTN_SIM_WATCHDOG", kDefaultWatchdog)) {
    // clang loads three trailing dwords as four: the segment is 16-byte aligned and padded.
    port.add_launch_range(launch.kernarg, (launch.kernarg_size + 15ull) / 16 * 16,
                          "kernarg segment");
    if (launch.dispatch_packet)
      port.add_launch_range(launch.dispatch_packet, 64, "dispatch packet");
    order.resize(memory.waves.size());
    if (launch.strict) {
      group_checks = std::make_unique<GroupChecks>(GroupChecks{
          LdsShadow(launch.lds_bytes, launch.program->has_small_lds_access), launch.races, {}});
      wave_checks.resize(memory.waves.size());
    }
  }

  void reset(const uint32_t id[3]);
  template <bool kTraced, bool kChecked>
  void run_wave(Wave& wave, TraceSink* sink);
  void run_slice(Wave& wave, TraceSink* sink);
  // Throws SimFault unless all waiting waves wait at the same s_barrier.
  void pass_barrier();
  [[noreturn]] void refuse_endless(const Wave& wave) const;
  [[noreturn]] void rethrow(SimFault& fault, const Wave& wave) const;
  void choose_order(uint64_t linear_id);

  const Launch launch;
  RegisterCheck registers;
  MemoryPort port;
  WorkgroupMemory memory;
  const uint64_t seed, watchdog;
  std::unique_ptr<GroupChecks> group_checks;  // null: the strict checks are off
  std::vector<WaveChecks> wave_checks;
  std::vector<uint32_t> order;
  uint32_t workgroup[3] = {0, 0, 0};
};

void WorkgroupRunner::State::reset(const uint32_t id[3]) {
  std::copy_n(id, 3, workgroup);
  memory.reset(launch, id, port, registers);
  const uint64_t linear_id = (uint64_t{id[2]} * launch.grid[1] + id[1]) * launch.grid[0] + id[0];
  choose_order(linear_id);
  if (!group_checks) return;
  group_checks->lds.reset();
  group_checks->group = {static_cast<uint32_t>(linear_id), false};
  for (Wave& wave : memory.waves) {
    wave.checks = &wave_checks[wave.index];
    wave.checks->reset(wave, *group_checks);
  }
}

template <bool kTraced, bool kChecked>
void WorkgroupRunner::State::run_wave(Wave& wave, TraceSink* sink) {
  WaveChecks* const checks = wave.checks;
  for (uint64_t left = kTimeSlice; left && wave.state == Wave::State::running; --left) {
    const Inst& inst = *wave.pc++;
    if constexpr (kChecked) checks->before(wave, inst);
    inst.run(wave, inst);
    ++wave.executed[static_cast<size_t>(inst.cls)];
    if constexpr (kTraced) trace_instruction(wave, inst, workgroup, *sink);
  }
}

void WorkgroupRunner::State::run_slice(Wave& wave, TraceSink* sink) {
  try {
    if (sink) {
      wave.checks ? run_wave<true, true>(wave, sink) : run_wave<true, false>(wave, sink);
    } else {
      wave.checks ? run_wave<false, true>(wave, nullptr) : run_wave<false, false>(wave, nullptr);
    }
    if (wave.instructions() > watchdog) refuse_endless(wave);
  } catch (SimFault& fault) {
    rethrow(fault, wave);
  }
}

void WorkgroupRunner::State::refuse_endless(const Wave& wave) const {
  std::string waiting;
  for (const Wave& other : memory.waves) {
    if (other.state != Wave::State::at_barrier) continue;
    waiting = text("; wave %u waits at a barrier that so never completes (pc %#llx)", other.index,
                   static_cast<unsigned long long>(launch.program->address_of(*(other.pc - 1))));
    break;
  }
  throw SimFault(
      text("wave %u has executed more than %llu instructions: an endless loop, or one "
           "that waits for what never comes (FLASHATTN_SIM_WATCHDOG sets the limit)%s",
           wave.index, static_cast<unsigned long long>(watchdog), waiting.c_str()));
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

// As in the ISA, waves that ended count as arrived, and a wave arrives whatever its EXEC is. The
// hardware only counts, so waves at different barriers release each other, too; in a program's
// source that is a barrier which some of the waves do not reach.
void WorkgroupRunner::State::pass_barrier() {
  const Wave* first = nullptr;
  for (Wave& wave : memory.waves) {
    if (wave.state != Wave::State::at_barrier) continue;
    if (!first) first = &wave;
    if (group_checks && wave.pc != first->pc) {
      SimFault fault(
          text("divergent barrier: this wave waits at an s_barrier while wave %u waits at "
               "another one (pc %#llx); expected all waves of the workgroup at the same "
               "s_barrier, or ended",
               first->index,
               static_cast<unsigned long long>(launch.program->address_of(*(first->pc - 1)))));
      rethrow(fault, wave);
    }
    wave.state = Wave::State::running;
  }
  if (group_checks) group_checks->lds.barrier();
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
  s.reset(id);
  std::vector<Wave>& waves = s.memory.waves;
  for (;;) {
    for (uint32_t i : s.order) {
      if (waves[i].state == Wave::State::running) s.run_slice(waves[i], trace);
    }
    auto in_state = [&](Wave::State state) {
      return std::ranges::count(waves, state, &Wave::state);
    };
    if (in_state(Wave::State::running)) continue;
    if (!in_state(Wave::State::at_barrier)) break;
    s.pass_barrier();
  }

  WorkgroupStats stats;
  for (const Wave& wave : waves) {
    for (size_t i = 0; i < kInstClasses; ++i) stats.by_class[i] += wave.executed[i];
    stats.wave_instructions += wave.instructions();
  }
  return stats;
}

}  // namespace fasim
