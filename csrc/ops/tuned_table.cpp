#include "ops/tuned_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "fwd_table.h"

namespace flashattn {
namespace {

std::mutex mutex;
FwdTuningSource current_source;
std::map<std::string, FwdTable> tables;  // by arch

FwdTable apply(const std::vector<FwdTuning>& tunings) {
  std::vector<FwdKernel> rows(std::begin(kFwdKernels), std::end(kFwdKernels));
  auto rest = rows.begin();
  for (const FwdTuning& tuning : tunings) {
    const auto row = std::find_if(
        rest, rows.end(), [&](const FwdKernel& kernel) { return tuning.kernel == kernel.name; });
    if (row == rows.end()) continue;
    row->clocks = tuning.clocks;
    // The kernel that splits has the same steps.
    for (FwdKernel& other : rows) {
      if (other.split && other.tile == row->tile && other.element == row->element)
        other.clocks = tuning.clocks;
    }
    std::rotate(rest, row, row + 1);
    ++rest;
  }
  return std::make_shared<const std::vector<FwdKernel>>(std::move(rows));
}

}  // namespace

void set_fwd_tuning_source(FwdTuningSource source) {
  const std::lock_guard lock(mutex);
  current_source = std::move(source);
  tables.clear();
}

FwdTable tuned_fwd_table(const std::string& arch) {
  FwdTuningSource source;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = tables.find(arch); found != tables.end()) return found->second;
    source = current_source;
  }
  // Without the lock: a source in Python waits for the interpreter, which a thread may hold that
  // waits here.
  FwdTable table = apply(source ? source(arch) : std::vector<FwdTuning>{});
  const std::lock_guard lock(mutex);
  return tables.try_emplace(arch, std::move(table)).first->second;
}

}  // namespace flashattn
