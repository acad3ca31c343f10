#include "check/fault.h"

#include <cinttypes>

#include "check/text.h"

namespace fasim {

SimFault::SimFault(std::string why) : reason(std::move(why)) { compose(); }

SimFault::SimFault(std::string why, int at_lane, uint64_t at_address)
    : lane(at_lane), address(at_address), reason(std::move(why)) {
  compose();
}

void SimFault::compose() {
  text_ = reason;
  if (!kernel.empty()) text_ += "\n  kernel:      " + kernel;
  if (!disassembly.empty()) {
    text_ += text("\n  instruction: %s  (pc %#" PRIx64 ")", disassembly.c_str(), pc);
  }
  if (wave >= 0) {
    text_ += text("\n  workgroup:   (%u, %u, %u), wave %d", workgroup[0], workgroup[1],
                  workgroup[2], wave);
  }
  if (lane >= 0) text_ += text(", lane %d", lane);
  if (address) text_ += text("\n  address:     %#" PRIx64, *address);
}

}  // namespace fasim
