#include "device/code_object.h"

#include <algorithm>
#include <cstring>

#include "device/bundle.h"
#include "device/load_error.h"
#include "device/target_id.h"
#include "llvm/Object/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"

namespace fasim {
namespace {

using llvm::object::ELF64LE;
using llvm::object::ELFFile;
namespace elf = llvm::ELF;

constexpr unsigned kFeatureFieldOff = 2, kFeatureFieldOn = 3;  // the v4 feature fields of e_flags

[[noreturn]] void invalid(const std::string& why) {
  throw LoadError(LoadFailure::invalid_image, "not a usable code object: " + why);
}

template <typename T>
T value(llvm::Expected<T> expected, const char* what) {
  if (!expected) invalid(std::string(what) + ": " + llvm::toString(expected.takeError()));
  return std::move(*expected);
}

std::string feature(const char* name, unsigned field) {
  if (field == kFeatureFieldOff) return std::string(":") + name + "-";
  if (field == kFeatureFieldOn) return std::string(":") + name + "+";
  return {};
}

}  // namespace

struct CodeObject::Elf {
  ELFFile<ELF64LE> file;

  explicit Elf(std::span<const uint8_t> bytes)
      : file(value(ELFFile<ELF64LE>::create(
                       llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size())),
                   "ELF header")) {}

  auto segments() const { return value(file.program_headers(), "program headers"); }

  // Throws LoadError unless the file is for this card and of a version that is read here.
  int check(const Card& card) const;
  // The msgpack bytes of the AMDGPU metadata note.
  std::span<const uint8_t> metadata() const;
};

int CodeObject::Elf::check(const Card& card) const {
  const auto& header = file.getHeader();
  if (header.e_ident[elf::EI_CLASS] != elf::ELFCLASS64 || header.e_machine != elf::EM_AMDGPU)
    invalid("its ELF machine is " + std::to_string(header.e_machine) + ", AMDGPU is 224");
  if (header.e_ident[elf::EI_OSABI] != elf::ELFOSABI_AMDGPU_HSA)
    invalid("its ELF OS ABI is " + std::to_string(header.e_ident[elf::EI_OSABI]) + ", HSA is 64");
  if (header.e_type != elf::ET_DYN) invalid("it is not linked (ELF type is not ET_DYN)");
  const unsigned abi = header.e_ident[elf::EI_ABIVERSION];
  if (abi < elf::ELFABIVERSION_AMDGPU_HSA_V4 || abi > elf::ELFABIVERSION_AMDGPU_HSA_V6)
    throw LoadError(LoadFailure::not_supported,
                    "code object version " + std::to_string(abi + 2) +
                        " is not supported; 4, 5 and 6 are (-mcode-object-version)");
  const unsigned flags = header.e_flags;
  const llvm::object::ELFObjectFile<ELF64LE> object =
      value(llvm::object::ELFObjectFile<ELF64LE>::create(llvm::MemoryBufferRef(
                llvm::StringRef(reinterpret_cast<const char*>(file.base()), file.getBufSize()),
                "code object")),
            "ELF object");
  const std::string target = object.tryGetCPUName().value_or("an unknown processor").str() +
                             feature("sramecc", (flags & elf::EF_AMDGPU_FEATURE_SRAMECC_V4) >> 10) +
                             feature("xnack", (flags & elf::EF_AMDGPU_FEATURE_XNACK_V4) >> 8);
  if (!target_runs_on(target, card.target))
    throw LoadError(LoadFailure::no_binary, "the code object is for " + target +
                                                ", this device is " + card.target +
                                                "; compile with --offload-arch=" + card.arch);
  return static_cast<int>(abi + 2);
}

std::span<const uint8_t> CodeObject::Elf::metadata() const {
  for (const auto& segment : segments()) {
    if (segment.p_type != elf::PT_NOTE) continue;
    llvm::Error error = llvm::Error::success();
    std::span<const uint8_t> found;
    for (const auto& note : file.notes(segment, error)) {
      if (note.getName() != "AMDGPU" || note.getType() != elf::NT_AMDGPU_METADATA) continue;
      const llvm::ArrayRef<uint8_t> bytes = note.getDesc(4);
      found = {bytes.data(), bytes.size()};
    }
    if (error) invalid("notes: " + llvm::toString(std::move(error)));
    if (!found.empty()) return found;
  }
  invalid("it has no AMDGPU metadata note");
}

CodeObject::CodeObject(std::span<const uint8_t> image, const Card& card, AddressSpace& memory)
    : memory_(memory) {
  const Elf elf(select_code_object(image, card));
  abi_version_ = elf.check(card);
  map_segments(elf, memory);
  try {
    relocate(elf);
    find_symbols(elf);
    find_kernels(elf, card.arch);
  } catch (...) {
    memory_.release(base_);
    throw;
  }
}

CodeObject::~CodeObject() { memory_.release(base_, "unloaded with its module"); }

void CodeObject::map_segments(const Elf& elf, AddressSpace& memory) {
  // A real one is a few MiB; the limit keeps a damaged header from asking for all memory.
  constexpr uint64_t kMost = uint64_t{256} << 20;
  for (const auto& segment : elf.segments()) {
    if (segment.p_type != elf::PT_LOAD) continue;
    if (segment.p_memsz > kMost || segment.p_vaddr > kMost - segment.p_memsz)
      invalid("a segment of " + std::to_string(segment.p_memsz) + " bytes lies at " +
              std::to_string(segment.p_vaddr));
    span_ = std::max(span_, segment.p_vaddr + segment.p_memsz);
  }
  if (span_ == 0) invalid("it has no segment to load");
  base_ = static_cast<uint8_t*>(memory.allocate(span_, "code object"));
  if (base_ == nullptr)
    throw LoadError(LoadFailure::out_of_memory,
                    "no host memory for a code object of " + std::to_string(span_) + " bytes");
  std::memset(base_, 0, span_);
  for (const auto& segment : elf.segments()) {
    if (segment.p_type != elf::PT_LOAD) continue;
    const uint64_t size = elf.file.getBufSize();
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset ||
        segment.p_filesz > segment.p_memsz) {
      memory.release(base_);
      invalid("a segment lies outside the file");
    }
    std::memcpy(base_ + segment.p_vaddr, elf.file.base() + segment.p_offset, segment.p_filesz);
  }
}

void CodeObject::relocate(const Elf& elf) {
  const auto sections = value(elf.file.sections(), "sections");
  for (const auto& section : sections) {
    if (section.sh_type != elf::SHT_RELA) continue;
    const auto* symtab = value(elf.file.getSection(section.sh_link), "relocation symbol table");
    for (const auto& rela : value(elf.file.relas(section), "relocations")) {
      uint64_t target = rela.r_addend;
      const auto* symbol = value(elf.file.getRelocationSymbol(rela, symtab), "relocation symbol");
      if (symbol != nullptr && symbol->st_shndx == elf::SHN_UNDEF)
        invalid("it refers to a symbol that it does not define");
      target += reinterpret_cast<uint64_t>(base_) + (symbol != nullptr ? symbol->st_value : 0);
      const uint32_t type = rela.getType(/*isMips64EL=*/false);
      const bool wide = type == elf::R_AMDGPU_RELATIVE64 || type == elf::R_AMDGPU_ABS64;
      if (span_ < 8 || rela.r_offset > span_ - (wide ? 8 : 4))
        invalid("a relocation lies outside its segments");
      uint8_t* place = base_ + rela.r_offset;
      if (wide)
        llvm::support::endian::write64le(place, target);
      else if (type == elf::R_AMDGPU_ABS32_LO)
        llvm::support::endian::write32le(place, static_cast<uint32_t>(target));
      else if (type == elf::R_AMDGPU_ABS32_HI)
        llvm::support::endian::write32le(place, static_cast<uint32_t>(target >> 32));
      else if (type != elf::R_AMDGPU_NONE)
        throw LoadError(LoadFailure::not_supported,
                        "relocation type " + std::to_string(type) + " is not supported");
    }
  }
}

void CodeObject::find_symbols(const Elf& elf) {
  const auto sections = value(elf.file.sections(), "sections");
  for (const auto& section : sections) {
    if (section.sh_type != elf::SHT_DYNSYM) continue;
    const llvm::StringRef names = value(elf.file.getStringTableForSymtab(section), "symbol names");
    for (const auto& symbol : value(elf.file.symbols(&section), "symbols")) {
      if (symbol.st_shndx == elf::SHN_UNDEF) continue;
      if (symbol.st_value > span_ || symbol.st_size > span_ - symbol.st_value)
        invalid("a symbol lies outside its segments");
      symbols_[value(symbol.getName(names), "symbol name").str()] = {
          reinterpret_cast<uint64_t>(base_) + symbol.st_value, symbol.st_size};
    }
  }
}

void CodeObject::find_kernels(const Elf& elf, const char* arch) {
  const auto segments = elf.segments();
  const auto text = std::ranges::find_if(segments, [](const auto& segment) {
    return segment.p_type == elf::PT_LOAD && (segment.p_flags & elf::PF_X) != 0;
  });
  const std::map<std::string, KernelMetadata> metadata = read_metadata(elf.metadata());
  if (text == segments.end()) {
    if (!metadata.empty()) invalid("it has kernels but no executable segment");
    return;
  }
  uint8_t* const code = base_ + text->p_vaddr;
  program_ = decode_program({code, text->p_filesz}, reinterpret_cast<uint64_t>(code), arch);
  for (const auto& [name, kernel] : metadata) {
    const std::optional<Variable> at = variable(kernel.symbol);
    if (!at || at->size < 64) invalid("kernel " + name + " has no descriptor");
    const auto descriptor = KernelDescriptor::parse(reinterpret_cast<const uint8_t*>(at->address));
    const uint64_t entry = at->address + descriptor.entry_offset;
    kernels_.emplace(name, Kernel{kernel, descriptor, at->address, entry, program_.get()});
  }
}

const Kernel* CodeObject::kernel(const std::string& name) const {
  const auto it = kernels_.find(name);
  return it == kernels_.end() ? nullptr : &it->second;
}

std::optional<Variable> CodeObject::variable(const std::string& name) const {
  const auto it = symbols_.find(name);
  if (it == symbols_.end()) return std::nullopt;
  return it->second;
}

}  // namespace fasim
