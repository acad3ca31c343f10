"""The instructions of a kernel's inner loop, counted in its disassembly."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flashattn_rocm.sim.hip import simulator_library

_INSTRUCTION = re.compile(r"^ +([0-9a-f]+)  (\S+)(?: (.*))?$")
_BRANCH_BYTES = 4


@dataclass(frozen=True)
class InnerLoop:
    """Of one trip, for a wave.

    Attributes:
        instructions: all of them.
        dot2: v_dot2_f32_f16.
        ds_read: loads from LDS.
        ds_write: stores to LDS.
        memory_load: global and buffer loads.
    """

    instructions: int
    dot2: int
    ds_read: int
    ds_write: int
    memory_load: int

    @property
    def dot2_share(self) -> float:
        """Of all instructions."""
        return self.dot2 / self.instructions


def disassemble(code_object: Path) -> dict[str, list[tuple[int, str, str]]]:
    """(byte offset, opcode, operands) of every instruction, by kernel.

    Raises:
        FileNotFoundError: the simulator's tool is not built.
        subprocess.CalledProcessError: it cannot read the file.
    """
    tool = simulator_library().with_name("flashattn-sim")
    text = subprocess.run([tool, "disasm", code_object], capture_output=True, text=True, check=True).stdout
    kernels: dict[str, list[tuple[int, str, str]]] = {}
    current: list[tuple[int, str, str]] = []
    for line in text.splitlines():
        found = _INSTRUCTION.match(line)
        if found:
            current.append((int(found[1], 16), found[2], found[3] or ""))
        elif line.endswith(":"):
            current = kernels.setdefault(line[:-1], [])
    return kernels


def inner_loop(code: list[tuple[int, str, str]]) -> InnerLoop:
    """Of the loops without another loop inside, the one with the most dot2, and of these the shortest.

    Args:
        code: of one kernel, from disassemble().

    Raises:
        ValueError: it has no loop.
    """
    spans = [
        (target, offset)
        for offset, opcode, operands in code
        if opcode.startswith(("s_cbranch", "s_branch")) and (target := _target(offset, operands)) <= offset
    ]
    loops = []
    for begin, end in spans:
        if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in spans):
            continue
        loops.append(_count([opcode for offset, opcode, _ in code if begin <= offset <= end]))
    if not loops:
        raise ValueError("the kernel has no loop")
    return max(loops, key=lambda loop: (loop.dot2, -loop.instructions))


def _target(offset: int, operands: str) -> int:
    """Of a branch, whose operand counts dwords from the next instruction in 16 bits with a sign."""
    dwords = int(operands)
    return offset + _BRANCH_BYTES + 4 * (dwords - 65536 if dwords >= 32768 else dwords)


def _count(opcodes: list[str]) -> InnerLoop:
    def starting(prefix: str | tuple[str, ...]) -> int:
        return sum(opcode.startswith(prefix) for opcode in opcodes)

    return InnerLoop(
        instructions=len(opcodes),
        dot2=starting("v_dot2_f32_f16"),
        ds_read=starting("ds_read"),
        ds_write=starting("ds_write"),
        memory_load=starting(("global_load", "buffer_load")),
    )
