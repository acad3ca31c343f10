// Target ids: a processor with optional feature settings, e.g. "gfx906:sramecc+:xnack-".
#pragma once

#include <string_view>

namespace fasim {

// Whether code built for `code_target` runs on a device of target `device_target`. A feature that
// the code leaves out fits any setting; one that it names must have the device's setting.
bool target_runs_on(std::string_view code_target, std::string_view device_target);

}  // namespace fasim
