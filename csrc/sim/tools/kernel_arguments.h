// Kernel arguments as text: "i32:5", "zeros:4096", "{file:q.bin,i64:128}".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/metadata.h"
#include "mem/address_space.h"

namespace fasim::tools {

inline constexpr const char* kArgumentHelp =
    "    i8:V i16:V i32:V i64:V u8:V u16:V u32:V u64:V   integers\n"
    "    f32:V f64:V                    floating point\n"
    "    zeros:N                        device buffer of N bytes, all 0\n"
    "    file:PATH                      device buffer with the file's bytes\n"
    "    out:N:PATH                     device buffer of N bytes, all 0; written to PATH "
    "afterwards\n"
    "    {SPEC,SPEC,...}                a struct passed by value, members naturally aligned\n";

// The arguments of one launch, with the device buffers that they point to.
class KernelArguments {
 public:
  explicit KernelArguments(AddressSpace& memory) : memory_(memory) {}
  ~KernelArguments();
  KernelArguments(const KernelArguments&) = delete;
  KernelArguments& operator=(const KernelArguments&) = delete;

  // Lays out `specs` as the kernel's explicit arguments. Throws UsageError for a spec that cannot
  // be read, or whose number or size is not what the kernel takes.
  std::vector<uint8_t> pack(const std::vector<std::string>& specs, const KernelMetadata& kernel);
  // Writes the out: buffers to their files.
  void write_outputs() const;

 private:
  struct Output {
    const uint8_t* data;
    size_t size;
    std::string path;
  };

  std::vector<uint8_t> value(const std::string& spec);
  std::vector<uint8_t> structure(const std::string& spec);
  uint8_t* buffer(size_t size, const std::string& spec);

  AddressSpace& memory_;
  std::vector<void*> buffers_;
  std::vector<Output> outputs_;
};

// The bytes of a file; throws UsageError when it cannot be read.
std::vector<uint8_t> read_file(const std::string& path);

}  // namespace fasim::tools
