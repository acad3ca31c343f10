"""Runs kernels in assembly, and takes the simulator's fault reports apart."""

import functools
import re
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Buffer, Hip, HipError, Module, simulator

BYTES = 4096  # of the buffer that kernels get

# After this s[8:9] is the address of a buffer of BYTES zero bytes, v1 the byte offset of a dword for
# each lane, and s6 the workgroup.
START = """s_load_dwordx2 s[8:9], s[4:5], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    """


@dataclass(frozen=True)
class Report:
    """A fault report. `address` is relative to the buffer where it lies in it; -1: there is none."""

    reason: str
    kernel: str
    instruction: str
    workgroup: tuple[int, ...]
    wave: int
    lane: int = -1
    address: int = -1


@dataclass(frozen=True)
class Shape:
    """How a kernel is launched: workgroups, and waves of 64 lanes in each."""

    groups: int = 1
    waves: int = 1


_REPORT = re.compile(
    r"(?:hipModuleLaunchKernel: )?(?P<reason>.*)\n"
    r"  kernel: +(?P<kernel>\S+)\n"
    r"  instruction: (?P<instruction>.*?) +\(pc (?P<pc>\w+)\)\n"
    r"  workgroup: +\((?P<workgroup>[\d, ]+)\), wave (?P<wave>\d+)(?:, lane (?P<lane>\d+))?"
    r"(?:\n  address: +(?P<address>\w+))?"
)


def _parse(text: str, buffer: int) -> Report:
    found = _REPORT.fullmatch(text)
    assert found, f"not a fault report:\n{text}"
    assert int(found["pc"], 16) % 4 == 0
    address = int(found["address"] or "-1", 0)
    inside = buffer <= address < buffer + BYTES
    return Report(
        # Addresses of code and memory differ from run to run.
        re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", found["reason"]),
        found["kernel"],
        found["instruction"],
        tuple(int(n) for n in found["workgroup"].split(",")),
        int(found["wave"]),
        int(found["lane"] or "-1"),
        address - buffer if inside else address,
    )


@functools.cache
def _assembled(kernel: Kernel) -> bytes:
    return assemble([kernel])


class Bench:
    """One kernel, loaded, with its buffer; a context manager."""

    def __init__(self, name: str, body: str, shape: Shape, lds_bytes: int) -> None:
        self.hip: Hip = simulator()
        self.shape = shape
        kernel = Kernel(name, START + body, lds_bytes=lds_bytes, max_threads=64 * shape.waves)
        self.name = name
        self.module = Module(self.hip, _assembled(kernel))
        self.buffer = Buffer(self.hip, BYTES)
        self.buffer.write(bytes(BYTES))

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.buffer.free()
        self.module.unload()

    def launch(self) -> None:
        """Raises HipError for a fault."""
        arguments = struct.pack("<QQQ", self.buffer.address, 0, 0)
        grid, block = (self.shape.groups, 1, 1), (64 * self.shape.waves, 1, 1)
        self.hip.launch(self.module.function(self.name), arguments, grid=grid, block=block)


def fault_of(name: str, body: str, shape: Shape = Shape(), lds_bytes: int = 1024) -> Report:
    """The report of a kernel that must be refused."""
    with Bench(name, body, shape, lds_bytes) as bench:
        with pytest.raises(HipError) as caught:
            bench.launch()
        assert caught.value.name == "hipErrorLaunchFailure"
        return _parse(caught.value.fault, bench.buffer.address)


def result_of(name: str, body: str, shape: Shape = Shape(), lds_bytes: int = 1024) -> NDArray[np.uint32]:
    """The buffer after a kernel that must run; raises HipError with the report otherwise."""
    with Bench(name, body, shape, lds_bytes) as bench:
        bench.launch()
        return bench.buffer.read().view(np.uint32)
