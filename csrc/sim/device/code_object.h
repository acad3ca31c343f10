// A gfx906 code object, loaded: its segments in device memory, its kernels and variables by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/card.h"
#include "device/metadata.h"
#include "exec/launch.h"
#include "isa/program.h"
#include "mem/address_space.h"

namespace fasim {

struct Kernel {
  KernelMetadata metadata;
  KernelDescriptor descriptor;
  uint64_t descriptor_address = 0;
  uint64_t entry = 0;  // address of its first instruction
  const Program* program = nullptr;
};

struct Variable {
  uint64_t address = 0;
  uint64_t size = 0;
};

class CodeObject {
 public:
  // `image` is a raw ELF code object or an offload bundle; it is copied and not kept. Throws
  // LoadError. `memory` must outlive the object.
  CodeObject(std::span<const uint8_t> image, const Card& card, AddressSpace& memory);
  ~CodeObject();
  CodeObject(const CodeObject&) = delete;
  CodeObject& operator=(const CodeObject&) = delete;

  const std::map<std::string, Kernel>& kernels() const { return kernels_; }
  const Kernel* kernel(const std::string& name) const;
  std::optional<Variable> variable(const std::string& name) const;
  const Program& program() const { return *program_; }
  int abi_version() const { return abi_version_; }  // code object version: 4, 5 or 6

 private:
  struct Elf;

  void map_segments(const Elf& elf, AddressSpace& memory);
  void relocate(const Elf& elf);
  void find_symbols(const Elf& elf);
  void find_kernels(const Elf& elf, const char* arch);

  AddressSpace& memory_;
  uint8_t* base_ = nullptr;  // device (= host) address of the ELF's virtual address 0
  uint64_t span_ = 0;        // bytes from there
  int abi_version_ = 0;
  std::map<std::string, Variable> symbols_;  // loaded addresses
  std::map<std::string, Kernel> kernels_;
  std::shared_ptr<const Program> program_;
};

}  // namespace fasim
