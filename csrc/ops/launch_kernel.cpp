#include "ops/launch_kernel.h"

#include <mutex>

namespace flashattn {
namespace {

std::mutex one_at_a_time;

}  // namespace

SimulatorTurn::SimulatorTurn() { one_at_a_time.lock(); }
SimulatorTurn::~SimulatorTurn() { one_at_a_time.unlock(); }

}  // namespace flashattn
