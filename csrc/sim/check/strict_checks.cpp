#include "check/strict_checks.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "check/fault.h"

namespace fasim {

bool strict_checks() {
  const char* value = std::getenv("FLASHATTN_SIM_CHECK");
  const std::string_view text = value ? value : "on";
  if (text == "on") return true;
  if (text == "off") return false;
  throw SimFault("FLASHATTN_SIM_CHECK=" + std::string(text) + ", allowed: on, off");
}

}  // namespace fasim
