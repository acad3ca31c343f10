// What the card and the kernel's build allow of a launch.
#pragma once

#include <optional>
#include <string>

#include "device/card.h"
#include "device/code_object.h"
#include "device/kernarg.h"

namespace fasim {

enum class LimitKind { configuration, lds, kernel_build };

struct BrokenLimit {
  LimitKind kind;
  std::string text;  // names what was asked for and what is allowed
};

std::optional<BrokenLimit> broken_limit(const Card& card, const KernelMetadata& kernel,
                                        const LaunchShape& shape);

}  // namespace fasim
