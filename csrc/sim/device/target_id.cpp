#include "device/target_id.h"

namespace fasim {
namespace {

// Cuts off and returns the text up to the next ':'.
std::string_view next_part(std::string_view& rest) {
  const size_t colon = rest.find(':');
  const std::string_view part = rest.substr(0, colon);
  rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  return part;
}

bool has_feature(std::string_view target, std::string_view feature) {
  next_part(target);
  while (!target.empty())
    if (next_part(target) == feature) return true;
  return false;
}

}  // namespace

bool target_runs_on(std::string_view code_target, std::string_view device_target) {
  std::string_view code = code_target, device = device_target;
  if (next_part(code) != next_part(device)) return false;
  while (!code.empty())
    if (!has_feature(device_target, next_part(code))) return false;
  return true;
}

}  // namespace fasim
