// What a workgroup's waves did to each part of LDS: which hold a defined value, and who
// touched them since the last barrier. Two waves race when both touch a byte, one of them by a
// plain write, with no barrier in between. Writes of the value that is there already are allowed:
// waves that all store the same constant are common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/store_data.h"

namespace fasim {

// One LDS access of a wave: `bytes` at addresses[lane] + offset, for each lane in `lanes`.
struct LdsAccess {
  const uint32_t* addresses = nullptr;
  uint32_t offset = 0;
  uint64_t lanes = 0;  // lanes that only repeat another one's address may be left out of a read
  uint32_t bytes = 0;
  uint32_t wave = 0;

  uint32_t at(uint32_t lane) const { return addresses[lane] + offset; }
};

class LdsShadow {
 public:
  // Keeps book by byte or, for a program whose accesses are all of whole dwords, by dword: that is
  // a quarter of the memory, which the host's first cache can hold.
  LdsShadow(uint32_t bytes, bool by_byte);

  void reset();
  void barrier();

  // Each throws SimFault for a race. Reads and atomics tell whether all bytes are defined; a write
  // makes them so when what it stores is `defined`. `lds` is the memory before the write.
  bool read(const LdsAccess& access);
  void write(const LdsAccess& access, bool defined, const StoreData& data, const uint8_t* lds);
  bool atomic(const LdsAccess& access);

  // Lanes of which some byte is undefined, and the first such byte of one of them.
  uint64_t undefined_lanes(const LdsAccess& access) const;
  uint32_t first_undefined(const LdsAccess& access, uint32_t lane) const;
  // After a write: what it stored is undefined in some lanes.
  void define(const LdsAccess& access, uint64_t undefined_lanes);

 private:
  enum class Use : uint8_t { read, write, atomic };
  struct Seen {
    bool others = false;  // another wave may be among those that matter for this use
    bool defined = false;
  };
  struct Rivals {
    uint8_t codes = 0;
    const char* did = nullptr;
  };

  template <class Fn>
  void by_width(const LdsAccess& access, Fn fn) const;
  template <Use kUse>
  Seen look(const LdsAccess& access);
  void join(const LdsAccess& access, std::vector<uint8_t>& cells, uint8_t code);
  // Who else has touched the byte in a way that goes ill with `use`.
  Rivals rivals(uint32_t address, uint32_t wave, Use use) const;
  // `data` and `lds` are null unless `use` is a write.
  void refuse_rivals(const LdsAccess& access, Use use, const StoreData* data,
                     const uint8_t* lds) const;

  // A cell for each byte or dword: the codes of the waves that used it so since the last barrier,
  // or-ed. A writers_ cell has kDefined, too.
  uint32_t shift_;  // from an address to its cell
  std::vector<uint8_t> readers_, writers_, atomics_;
};

}  // namespace fasim
