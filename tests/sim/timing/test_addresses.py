"""Simulated time does not depend on where the host happens to put memory."""

import json
import struct
from contextlib import ExitStack

import numpy as np
import pytest

from flashattn_rocm.sim.validation_kernels import compile_kernels
from tests.kit.hip import Buffer, Hip, Module, simulator

BYTES = 4 << 20


def clocks_of_copy(hip: Hip, module: Module, given: int, taken: int) -> int:
    """Clocks of `copy_dwordx4` over 3.75 MiB at these addresses."""
    arguments = struct.pack("<QQI", given, taken, 1)
    grid, block = (240, 1, 1), (256, 1, 1)
    return json.loads(hip.launch_timed(module.function("copy_dwordx4"), arguments, grid=grid, block=block))[
        "clocks"
    ]


@pytest.fixture(scope="module")
def microbenchmarks() -> Module:
    return Module(simulator(), compile_kernels())


def test_device_memory_may_lie_anywhere(microbenchmarks: Module) -> None:
    hip = simulator()
    clocks = set()
    with ExitStack() as stack:
        for pages_between in (0, 3, 11):
            given = stack.enter_context(Buffer(hip, BYTES))
            stack.enter_context(Buffer(hip, 4096 * pages_between + 1))
            taken = stack.enter_context(Buffer(hip, BYTES))
            clocks.add(clocks_of_copy(hip, microbenchmarks, given.address, taken.address))
    assert len(clocks) == 1


def test_registered_host_memory_may_lie_anywhere(microbenchmarks: Module) -> None:
    hip = simulator()
    memory = np.zeros(2 * BYTES + 65536, np.uint8)
    first = -memory.ctypes.data % 4096
    clocks = set()
    for offset in (0, 64, 256 * 5 + 64, 4096 * 7 + 1024):
        given = memory[first : first + BYTES]
        taken = memory[first + BYTES + offset : first + 2 * BYTES + offset]
        hip.register_read_only(given)
        hip.call("hipHostRegister", taken.ctypes.data, taken.nbytes, 0)
        clocks.add(clocks_of_copy(hip, microbenchmarks, given.ctypes.data, taken.ctypes.data))
        hip.unregister(given)
        hip.unregister(taken)
    assert len(clocks) == 1
