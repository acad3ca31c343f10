// Why a code object could not be loaded; the HIP facade turns the kind into an error code.
#pragma once

#include <stdexcept>
#include <string>

namespace fasim {

enum class LoadFailure {
  invalid_image,  // not a code object, or a damaged one
  no_binary,      // a sound file that holds nothing for this card
  not_supported,  // a form that this simulator does not read
  out_of_memory,
};

class LoadError : public std::runtime_error {
 public:
  LoadError(LoadFailure kind, const std::string& text) : std::runtime_error(text), kind(kind) {}
  LoadFailure kind;
};

}  // namespace fasim
