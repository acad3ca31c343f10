#include "exec/trace.h"

#include <bit>

#include "isa/opcodes.h"

namespace fasim {
namespace {

TraceWrite scalar_write(const Wave& wave, uint32_t number) {
  TraceWrite w;
  w.bank = "s";
  w.index = number;
  if (number == kVcc || number == kVcc + 1u) w.bank = "vcc", w.index = number - kVcc;
  if (number == kExec || number == kExec + 1u) w.bank = "exec", w.index = number - kExec;
  w.lane_count = 1;
  w.values[0] = wave.sgpr[number];
  return w;
}

TraceWrite vector_write(Wave& wave, uint32_t number) {
  TraceWrite w;
  w.bank = "v";
  w.index = number;
  for (uint64_t lanes = wave.exec(); lanes && w.lane_count < w.lanes.size(); lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    w.lanes[w.lane_count] = static_cast<uint8_t>(lane);
    w.values[w.lane_count++] = wave.row(number)[lane];
  }
  return w;
}

void add_operand(Wave& wave, Operand o, std::vector<TraceWrite>& writes) {
  for (uint32_t i = 0; i < o.dwords; ++i) {
    if (o.where == Where::vgpr) writes.push_back(vector_write(wave, o.index + i));
    if (o.where == Where::sgpr) writes.push_back(scalar_write(wave, o.index + i));
  }
}

}  // namespace

void trace_instruction(Wave& wave, const Inst& inst, const uint32_t workgroup[3], TraceSink& sink) {
  TraceRecord record;
  for (int i = 0; i < 3; ++i) record.workgroup[i] = workgroup[i];
  record.wave = wave.index;
  record.pc = wave.program->address_of(inst);
  record.exec = wave.exec();
  record.disassembly = wave.program->text_of(inst);
  add_operand(wave, inst.dst, record.writes);
  add_operand(wave, inst.mask_dst, record.writes);
  if (inst.cls == InstClass::salu) {
    TraceWrite scc;
    scc.bank = "scc";
    scc.lane_count = 1;
    scc.values[0] = wave.scc;
    record.writes.push_back(scc);
  }
  sink.instruction(record);
}

}  // namespace fasim
