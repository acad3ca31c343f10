"""What a kernel's loops are made of, counted in the disassembly of its code object."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from buildlib.toolchain import DeviceCompiler, find_objdump

# "\ts_cbranch_scc1 65340   // 000000001A2C: BF85FF3C <kernel+0x1c0>"; the target follows a branch only.
_INSTRUCTION = re.compile(r"^\s+(\w+).*//\s*([0-9A-F]+):(?:.*<([^>+]+)(?:\+0x([0-9a-f]+))?>)?")
_KERNEL = re.compile(r"^([0-9a-f]+) <(.+)>:$")

# Prefixes of mnemonics; the first that fits counts.
_KINDS = {
    "dot2": ("v_dot2",),
    "valu": ("v_",),
    "ds_read": ("ds_read", "ds_load"),
    "ds_write": ("ds_write", "ds_store"),
    "load": ("buffer_load", "global_load"),
    "waitcnt": ("s_waitcnt",),
    "barrier": ("s_barrier",),
}


@dataclass(frozen=True)
class InstructionMix:
    """Instructions of one trip of a loop, for a wave, as they stand in the code; branches not followed.

    Attributes:
        instructions: all of them.
        dot2: two fp16 products, summed in fp32.
        valu: all other vector instructions.
        ds_read: loads from LDS.
        ds_write: stores to LDS.
        load: from memory.
        waitcnt: s_waitcnt.
        barrier: s_barrier.
    """

    instructions: int
    dot2: int
    valu: int
    ds_read: int
    ds_write: int
    load: int
    waitcnt: int
    barrier: int

    def describe(self) -> dict[str, object]:
        """The counts, and the share of dot2 in all instructions."""
        return {**asdict(self), "dot2_share": round(self.dot2 / self.instructions, 4)}


@dataclass(frozen=True)
class Instruction:
    """One line of a disassembly; target is that of a branch inside the kernel."""

    address: int
    mnemonic: str
    target: int | None


def disassemble(code_object: Path, compiler: DeviceCompiler) -> dict[str, list[Instruction]]:
    """The instructions of each kernel.

    Empty if the compiler came without llvm-objdump: a build can do without.
    """
    program = find_objdump(compiler)
    if shutil.which(program) is None:
        return {}
    command = [program, "--disassemble", str(code_object)]
    return parse_disassembly(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def parse_disassembly(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each kernel in llvm-objdump's text."""
    kernels: dict[str, list[Instruction]] = {}
    entries: dict[str, int] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if kernel := _KERNEL.match(line):
            entries[kernel[2]] = int(kernel[1], 16)
            current = kernels.setdefault(kernel[2], [])
        elif found := _INSTRUCTION.match(line):
            mnemonic, address, name, offset = found.groups()
            is_branch = mnemonic.startswith(("s_branch", "s_cbranch")) and name in entries
            target = entries[name] + int(offset or "0", 16) if is_branch else None
            current.append(Instruction(int(address, 16), mnemonic, target))
    return kernels


def loads_by_lanes(code: Sequence[Instruction]) -> int:
    """Loads through a buffer whose description the compiler has in VGPRs, each a loop over its values.

    All of ours are the same in every lane: such a loop is 13 instructions that a load by SGPRs does not need.
    """
    loops = 0
    for at, end in enumerate(code):
        if end.mnemonic == "s_cbranch_execnz" and end.target is not None and end.target < end.address:
            loop = [i.mnemonic for i in code[:at] if i.address >= end.target]
            of_a_load = any(mnemonic.startswith("buffer_") for mnemonic in loop)
            loops += of_a_load and "v_readfirstlane_b32" in loop and loop[-1] == "s_xor_b64"
    return loops


def inner_loop(code: Sequence[Instruction]) -> InstructionMix | None:
    """Of the spans from a backward branch's target to it, those without another inside, the busiest.

    Where there are products, a loop without any inside theirs, such as a rare path's, does not count.
    """
    ends = {(i.target, i.address) for i in code if i.target is not None and i.target <= i.address}
    spans = {span: _count([i.mnemonic for i in code if span[0] <= i.address <= span[1]]) for span in ends}
    spans = {span: mix for span, mix in spans.items() if mix.dot2} or spans
    inner = [
        mix
        for (begin, end), mix in sorted(spans.items())
        if not any(span != (begin, end) and begin <= span[0] and span[1] <= end for span in spans)
    ]
    return max(inner, key=lambda mix: (mix.dot2, mix.valu), default=None)


def _count(mnemonics: Sequence[str]) -> InstructionMix:
    counts = dict.fromkeys(_KINDS, 0)
    for mnemonic in mnemonics:
        kind = next((kind for kind, prefixes in _KINDS.items() if mnemonic.startswith(prefixes)), None)
        if kind is not None:
            counts[kind] += 1
    return InstructionMix(instructions=len(mnemonics), **counts)
