// The rows that dispatch weighs: those of the build, with the clocks that were measured on this
// machine in place of the shipped ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel_table.h"

namespace flashattn {

struct FwdTuning {
  std::string kernel;  // of this build, or it is passed over
  FwdClocks clocks;
};

using FwdTable = std::shared_ptr<const std::vector<FwdKernel>>;
using FwdTuningSource = std::function<std::vector<FwdTuning>(const std::string& arch)>;

// What is asked, once for each arch and not before a forward needs it; what an earlier source said
// is forgotten.
void set_fwd_tuning_source(FwdTuningSource source);

// Every kernel of the build. Those that the source names come first, in its order: of two estimates
// that are equal the first row's is taken.
FwdTable tuned_fwd_table(const std::string& arch);

}  // namespace flashattn
