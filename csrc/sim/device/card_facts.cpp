#include "device/card_facts.h"

#include <dlfcn.h>
#include <llvm/Support/JSON.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

namespace fasim {
namespace {

struct NumberField {
  const char* key;
  std::variant<uint32_t CardTiming::*, double CardTiming::*> member;
};
#define FIELD(name) \
  NumberField { #name, &CardTiming::name }
constexpr NumberField kTimingFields[] = {
    FIELD(compute_units),
    FIELD(clock_mhz),
    FIELD(valu_full),
    FIELD(valu_half),
    FIELD(valu_quarter),
    FIELD(valu_mul32),
    FIELD(valu_convert),
    FIELD(valu_f64_quarter),
    FIELD(valu_to_salu),
    FIELD(lds_latency),
    FIELD(lds_queue),
    FIELD(bpermute_port),
    FIELD(smem_hit),
    FIELD(scalar_cache_bytes),
    FIELD(l1_bytes),
    FIELD(l1_ways),
    FIELD(line_bytes),
    FIELD(l1_latency),
    FIELD(vmem_queue),
    FIELD(l2_bytes),
    FIELD(l2_ways),
    FIELD(l2_channels),
    FIELD(l2_channel_interleave),
    FIELD(l2_channel_folds),
    FIELD(l2_bytes_per_clk),
    FIELD(l2_partial_write),
    FIELD(l2_latency),
    FIELD(hbm_gbps),
    FIELD(hbm_read_efficiency),
    FIELD(hbm_write_efficiency),
    FIELD(hbm_latency),
    FIELD(branch_taken),
    FIELD(barrier_release),
    FIELD(workgroup_launch),
    FIELD(launch_us),
};
#undef FIELD

// Beside the library or the tool that holds this code.
std::string facts_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&card_facts), &info) == 0) return "cards.json";
  const std::string binary = info.dli_fname;
  const size_t slash = binary.rfind('/');
  return slash == std::string::npos ? "cards.json" : binary.substr(0, slash + 1) + "cards.json";
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error("the simulated card's facts in " + path + ": " + why);
}

double number(const std::string& path, const llvm::json::Object& card, const char* key) {
  const std::optional<double> value = card.getNumber(key);
  if (!value) refuse(path, std::string("there is no number ") + key);
  return *value;
}

std::string text(const std::string& path, const llvm::json::Object& card, const char* key) {
  const auto value = card.getString(key);
  if (!value) refuse(path, std::string("there is no text ") + key);
  return value->str();
}

const llvm::json::Object& choose(const std::string& path, const llvm::json::Array& cards) {
  const char* wanted = std::getenv("FLASHATTN_SIM_CARD");
  std::string known;
  for (const llvm::json::Value& value : cards) {
    const llvm::json::Object* card = value.getAsObject();
    if (!card) refuse(path, "an entry is no object");
    const std::string key = text(path, *card, "key");
    if (!wanted || *wanted == '\0' || key == wanted) return *card;
    known += (known.empty() ? "" : ", ") + key;
  }
  refuse(path, "FLASHATTN_SIM_CARD=" + std::string(wanted ? wanted : "") +
                   " is unknown; allowed are " + known);
}

CardTiming read_timing(const std::string& path, const llvm::json::Object& json) {
  CardTiming timing;
  timing.name = text(path, json, "name");
  for (const NumberField& field : kTimingFields) {
    const double value = number(path, json, field.key);
    std::visit([&]<class T>(T CardTiming::* member) { timing.*member = static_cast<T>(value); },
               field.member);
  }
  return timing;
}

Card make_card(const std::string& path, const llvm::json::Object& json, const CardTiming& timing) {
  // Kept for the life of the process: Card holds plain pointers.
  static const std::string name = timing.name + " (simulated)";
  Card card = kGfx906;
  card.name = name.c_str();
  card.compute_units = timing.compute_units;
  card.clock_khz = static_cast<uint32_t>(timing.clock_mhz * 1000);
  card.l2_bytes = timing.l2_bytes;
  card.memory_bytes = static_cast<uint64_t>(number(path, json, "memory_gib")) << 30;
  // HBM2 moves two bits a clock and pin.
  card.memory_clock_khz = static_cast<uint32_t>(timing.hbm_gbps * 8e6 / 2 / card.memory_bus_bits);
  return card;
}

CardFacts load() {
  const std::string path = facts_path();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) refuse(path, "cannot be read (" + file.getError().message() + ")");
  auto parsed = llvm::json::parse((*file)->getBuffer());
  if (!parsed) refuse(path, "is no JSON: " + llvm::toString(parsed.takeError()));
  const llvm::json::Array* cards = parsed->getAsArray();
  if (!cards) refuse(path, "is no list of cards");
  const llvm::json::Object& json = choose(path, *cards);
  const CardTiming timing = read_timing(path, json);
  return {make_card(path, json, timing), timing};
}

}  // namespace

const CardFacts& card_facts() {
  static const CardFacts facts = load();
  return facts;
}

}  // namespace fasim
