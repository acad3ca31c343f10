#include "exec/addressing.h"

#include <cinttypes>

#include "check/fault.h"
#include "check/text.h"
#include "exec/buffer_resource.h"
#include "exec/lane_access.h"
#include "exec/lanes.h"
#include "exec/operands.h"

namespace fasim {
namespace {

void require_alignment(const AccessShape& shape, uint64_t address, int lane) {
  if (shape.alignment && address % shape.alignment) {
    throw SimFault(text("%u-byte atomic at %#" PRIx64 " is not %u-byte aligned", shape.bytes,
                        address, shape.alignment),
                   lane, address);
  }
}

// All active lanes inside one window is the common case and costs one look at the extremes; the
// slow way names the lane that is refused.
void check_global(Wave& wave, const AccessShape& shape, LanePointers& p) {
  const uint64_t lanes = p.global;
  if (!lanes) return;
  uint64_t lowest = ~0ull, highest = 0, low_bits = 0;
  if (lanes == kAllLanes) {
    u64x16 low = ~0ull, high = 0, bits = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      const u64x16 address = load_vector<u64x16>(p.host + pass * kPassLanes);
      low = __builtin_elementwise_min(low, address);
      high = __builtin_elementwise_max(high, address);
      bits |= address;
    }
    lowest = __builtin_reduce_min(low);
    highest = __builtin_reduce_max(high);
    low_bits = __builtin_reduce_or(bits);
  } else {
    for_each_lane(lanes, [&](uint32_t lane) {
      lowest = std::min(lowest, p.host[lane]);
      highest = std::max(highest, p.host[lane]);
      low_bits |= p.host[lane];
    });
  }
  const uint32_t alignment = shape.alignment ? shape.alignment : std::min(shape.bytes, 4u);
  const bool aligned = (low_bits & (alignment - 1)) == 0;
  const uint64_t end = highest + shape.bytes;
  if (aligned && wave.memory->covers(lowest, end, shape.access)) {
    p.read_only = wave.memory->read_only(lowest, end);
    return;
  }
  for_each_lane(lanes, [&](uint32_t lane) {
    require_alignment(shape, p.host[lane], static_cast<int>(lane));
    wave.memory->check(p.host[lane], shape.bytes, shape.access, static_cast<int>(lane));
  });
}

uint8_t* private_memory(const Wave& wave, uint32_t lane, uint64_t offset, uint32_t bytes) {
  if (offset + bytes > wave.scratch_bytes_per_lane || offset % std::min(bytes, 4u)) {
    throw SimFault(text("%u-byte scratch access at private offset %#" PRIx64
                        " is outside the lane's %u bytes or misaligned",
                        bytes, offset, wave.scratch_bytes_per_lane),
                   static_cast<int>(lane), offset);
  }
  return reinterpret_cast<uint8_t*>(wave.scratch) + lane * uint64_t{wave.scratch_bytes_per_lane} +
         offset;
}

uint8_t* shared_memory(const Wave& wave, uint32_t lane, uint32_t offset, uint32_t bytes) {
  const uint64_t end = static_cast<uint64_t>(offset) + bytes;
  if (end > wave.lds_bytes || offset % std::min(bytes, 4u)) {
    throw SimFault(text("%u-byte flat access at LDS offset %#x is outside the workgroup's %u bytes "
                        "or misaligned",
                        bytes, offset, wave.lds_bytes),
                   static_cast<int>(lane), offset);
  }
  return wave.lds + offset;
}

// 64-bit VGPR address, or SGPR base plus 32-bit VGPR offset.
void compute_addresses(Wave& wave, const Inst& inst, const AccessShape& shape, LanePointers& out) {
  const Operand base = inst.src[shape.saddr_source];
  const uint32_t* row = wave.row(inst.src[shape.first_source].index);
  const bool scalar_base = base.where == Where::sgpr;
  const uint64_t constant = static_cast<uint64_t>(static_cast<int64_t>(inst.memory.offset)) +
                            shape.skip + (scalar_base ? wave.read64(base.index) : 0);
  for (int p = 0; p < kPassLanes * kPasses; p += kPassLanes) {
    const u32x16 low = load_vector<u32x16>(row + p);
    const u64x16 address = scalar_base ? __builtin_convertvector(low, u64x16)
                                       : join64(low, load_vector<u32x16>(row + kRowWords + p));
    store_vector(out.host + p, address + constant);
  }
}

}  // namespace

void GlobalAddressing::resolve(Wave& wave, const Inst& inst, const AccessShape& shape,
                               LanePointers& out) {
  compute_addresses(wave, inst, shape, out);
  out.lanes = out.global = wave.exec();
  check_global(wave, shape, out);
}

void FlatAddressing::resolve(Wave& wave, const Inst& inst, const AccessShape& shape,
                             LanePointers& out) {
  AccessShape no_base = shape;
  no_base.saddr_source = kMaxSources - 1;  // FLAT has no SGPR base, so this operand is empty
  compute_addresses(wave, inst, no_base, out);
  out.lanes = wave.exec();
  for_each_lane(out.lanes, [&](uint32_t lane) {
    const uint64_t address = out.host[lane];
    const auto high = static_cast<uint32_t>(address >> 32), low = static_cast<uint32_t>(address);
    const uint8_t* host = nullptr;
    if (high == kSharedAperture) {
      host = shared_memory(wave, lane, low, shape.bytes);
      out.shared |= 1ull << lane;
    }
    if (high == kPrivateAperture) host = private_memory(wave, lane, low, shape.bytes);
    if (host) out.host[lane] = reinterpret_cast<uint64_t>(host);
    if (!host) out.global |= 1ull << lane;
  });
  check_global(wave, shape, out);
}

namespace {

// The scratch V#: an element of 4 bytes, lane after lane, so that base and soffset count the bytes
// of all 64 lanes. Only lanes reach it, so each lane's bytes are kept together here.
void resolve_scratch(Wave& wave, const BufferResource& v, uint32_t soffset,
                     const AccessShape& shape, LanePointers& out) {
  const uint64_t wave_offset = v.base - wave.scratch + soffset;
  for_each_lane(out.lanes, [&](uint32_t lane) {
    const uint64_t offset = wave_offset / kLanes + out.host[lane];
    out.host[lane] = reinterpret_cast<uint64_t>(private_memory(wave, lane, offset, shape.bytes));
  });
}

}  // namespace

void BufferAddressing::resolve(Wave& wave, const Inst& inst, const AccessShape& shape,
                               LanePointers& out) {
  const Operand address = inst.src[shape.first_source];
  const BufferResource v(wave, inst.src[shape.first_source + 1].index);
  const uint32_t soffset = read_scalar32(wave, inst.src[shape.first_source + 2]);
  out.lanes = wave.exec();
  out.out_of_range = 0;
  const bool indexed = inst.memory.idxen, offset_enabled = inst.memory.offen;
  const uint32_t* index_row = indexed ? wave.row(address.index) : nullptr;
  const uint32_t* offset_row =
      offset_enabled ? wave.row(address.index + (indexed ? 1 : 0)) : nullptr;
  // Offsets first: both kinds of buffer need them per lane.
  for_each_lane(out.lanes, [&](uint32_t lane) {
    out.host[lane] = (offset_row ? offset_row[lane] : 0) +
                     static_cast<uint32_t>(inst.memory.offset) + shape.skip;
  });
  if (v.swizzled) return resolve_scratch(wave, v, soffset, shape, out);
  for_each_lane(out.lanes, [&](uint32_t lane) {
    const uint64_t offset = out.host[lane];
    const uint64_t index = index_row ? index_row[lane] : 0;
    const bool beyond = v.stride ? index >= v.records || offset + shape.bytes > v.stride
                                 : offset + soffset + shape.bytes > v.records;
    if (beyond) out.out_of_range |= 1ull << lane;
    out.host[lane] = v.base + soffset + index * v.stride + offset;
  });
  out.lanes &= ~out.out_of_range;
  out.global = out.lanes;
  check_global(wave, shape, out);
}

}  // namespace fasim
