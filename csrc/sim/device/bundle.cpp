#include "device/bundle.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "device/load_error.h"
#include "device/target_id.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"

namespace fasim {
namespace {

constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressedMagic = "CCOB";
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";
constexpr std::string_view kTriple = "-amdgcn-amd-amdhsa-";
// More entries or a longer id than any toolchain writes: the header is damaged, and following its
// counts would walk off the image (hipModuleLoadData is told no size).
constexpr uint64_t kMaxEntries = 4096, kMaxIdLength = 4096;

struct Entry {
  uint64_t offset, size;
  std::string_view id;
};

std::string_view text(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

bool starts_with(const void* data, std::string_view magic) {
  // strncmp: stops at the first difference, so a shorter image is not read past its end.
  return std::strncmp(static_cast<const char*>(data), magic.data(), magic.size()) == 0;
}

uint64_t read64(const uint8_t* at) { return llvm::support::endian::read64le(at); }

[[noreturn]] void invalid(const std::string& why) {
  throw LoadError(LoadFailure::invalid_image, "not a usable code object: " + why);
}

// Reads the table of a bundle whose bytes from `data` on are readable up to `limit`.
std::vector<Entry> read_entries(const uint8_t* data, size_t limit) {
  size_t at = kBundleMagic.size();
  const auto need = [&](uint64_t bytes) {
    if (bytes > limit - at) invalid("the offload bundle's table is cut off");
  };
  need(8);
  const uint64_t count = read64(data + at);
  at += 8;
  if (count > kMaxEntries)
    invalid("the offload bundle names " + std::to_string(count) + " entries");
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    need(24);
    const uint64_t id_size = read64(data + at + 16);
    if (id_size > kMaxIdLength) invalid("an id in the offload bundle is damaged");
    Entry entry{read64(data + at), read64(data + at + 8), {}};
    at += 24;
    need(id_size);
    entry.id = text(data + at, id_size);
    at += id_size;
    entries.push_back(entry);
  }
  return entries;
}

// "hipv4-amdgcn-amd-amdhsa--gfx906:xnack-" -> "gfx906:xnack-"; empty for the host's entry.
std::string_view entry_target(std::string_view id) {
  const size_t triple = id.find(kTriple);
  if (triple == std::string_view::npos) return {};
  std::string_view rest = id.substr(triple + kTriple.size());
  if (!rest.empty() && rest.front() == '-') rest.remove_prefix(1);
  return rest;
}

std::span<const uint8_t> select_entry(std::span<const uint8_t> image, const Card& card) {
  std::string found;
  for (const Entry& entry : read_entries(image.data(), image.size())) {
    const std::string_view target = entry_target(entry.id);
    if (target.empty()) continue;
    if (!target_runs_on(target, card.target)) {
      found += (found.empty() ? "" : ", ") + std::string(target);
      continue;
    }
    if (entry.offset > image.size() || entry.size > image.size() - entry.offset)
      invalid("bundle entry " + std::string(entry.id) + " lies outside the file");
    return image.subspan(entry.offset, entry.size);
  }
  throw LoadError(LoadFailure::no_binary,
                  std::string("no code object for ") + card.target +
                      "; the bundle holds: " + (found.empty() ? "nothing for AMD GPUs" : found) +
                      "; compile with --offload-arch=" + card.arch);
}

size_t bundle_size(const uint8_t* data) {
  size_t end = 0;
  for (const Entry& entry : read_entries(data, SIZE_MAX))
    end = std::max<size_t>(end, entry.offset + entry.size);
  return end;
}

size_t elf_size(const uint8_t* data) {
  llvm::ELF::Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  size_t end = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    llvm::ELF::Elf64_Phdr segment;
    std::memcpy(&segment, data + header.e_phoff + i * sizeof(segment), sizeof(segment));
    end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

[[noreturn]] void compressed() {
  throw LoadError(LoadFailure::not_supported,
                  "this is a compressed offload bundle (CCOB), which the simulator does not read; "
                  "compile with --no-offload-compress");
}

}  // namespace

std::span<const uint8_t> select_code_object(std::span<const uint8_t> image, const Card& card) {
  const std::string_view bytes = text(image.data(), image.size());
  if (bytes.starts_with(kElfMagic)) return image;
  if (bytes.starts_with(kBundleMagic)) return select_entry(image, card);
  if (bytes.starts_with(kCompressedMagic)) compressed();
  invalid("it starts neither like an ELF file nor like an offload bundle");
}

size_t image_size(const void* data) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (starts_with(data, kElfMagic)) return elf_size(bytes);
  if (starts_with(data, kCompressedMagic)) compressed();
  if (starts_with(data, kBundleMagic)) return bundle_size(bytes);
  invalid("it starts neither like an ELF file nor like an offload bundle");
}

}  // namespace fasim
