// printf into a std::string: libstdc++ 12 has no <format>.
#pragma once

#include <string>

namespace fasim {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

}  // namespace fasim
