// The one way in which simulated code is refused.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace fasim {

// Semantics throw a SimFault with reason, lane and address; the run loop adds where it happened.
struct SimFault : std::exception {
  explicit SimFault(std::string why);
  SimFault(std::string why, int at_lane, uint64_t at_address);

  // Builds the text that what() returns from the fields below.
  void compose();
  const char* what() const noexcept override { return text_.c_str(); }

  std::string kernel;
  uint64_t pc = 0;
  std::string disassembly;
  uint32_t workgroup[3] = {0, 0, 0};
  int wave = -1;  // index in the workgroup; -1: not tied to a wave
  int lane = -1;  // -1: not tied to a lane
  std::optional<uint64_t> address;
  std::string reason;

 private:
  std::string text_;
};

}  // namespace fasim
