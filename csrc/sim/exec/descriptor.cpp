#include <cstring>

#include "exec/launch.h"

namespace fasim {
namespace {

template <class T>
T field(const uint8_t* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

}  // namespace

KernelDescriptor KernelDescriptor::parse(const uint8_t* bytes) {
  KernelDescriptor d;
  d.group_segment_bytes = field<uint32_t>(bytes, 0);
  d.private_segment_bytes = field<uint32_t>(bytes, 4);
  d.kernarg_bytes = field<uint32_t>(bytes, 8);
  d.entry_offset = field<int64_t>(bytes, 16);
  d.rsrc3 = field<uint32_t>(bytes, 44);
  d.rsrc1 = field<uint32_t>(bytes, 48);
  d.rsrc2 = field<uint32_t>(bytes, 52);
  d.properties = field<uint16_t>(bytes, 56);
  return d;
}

WorkgroupStats& WorkgroupStats::operator+=(const WorkgroupStats& other) {
  wave_instructions += other.wave_instructions;
  for (size_t i = 0; i < by_class.size(); ++i) by_class[i] += other.by_class[i];
  return *this;
}

}  // namespace fasim
