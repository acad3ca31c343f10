"""Runs a unit's functions on the simulator and on the host, on the same inputs."""

import ctypes
import random
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.kit.hip import Buffer, Hip, HipError, Module
from tests.sim.fuzz.build import Unit

GROUPS = 3
LANES = 64
OUT_WORDS = 22
TABLE_WORDS = 256
STATE = np.dtype([("l", "<u8", 3), ("d", "<f8", 2), ("i", "<u4", 6), ("f", "<f4", 4), ("h", "<f2", 4)])
OUT_NAMES = [
    *["l0 low", "l0 high", "l1 low", "l1 high", "l2 low", "l2 high"],
    *["d0 low", "d0 high", "d1 low", "d1 high"],
    *["i0", "i1", "i2", "i3", "i4", "i5", "f0", "f1", "f2", "f3"],
    *["h0 and h1", "h2, h3 and the slot"],
]

_EDGES: dict[str, list[float]] = {
    "f": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-40, 2147483648.0, 65504.0, 0.5],
    "h": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 0.5],
    "i": [0, 1, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF],
    "l": [0, 1, 63, 64, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1],
}
_EDGES["d"] = [*_EDGES["f"], 1.7e308, 5e-324]


@dataclass(frozen=True)
class Inputs:
    states: NDArray[np.void]
    table: NDArray[np.uint32]
    slots: NDArray[np.uint32]


def make_inputs(seed: int) -> Inputs:
    """A third edge values, the rest of moderate size or arbitrary bits."""
    rng = np.random.default_rng(seed)
    pick = random.Random(seed)
    count = GROUPS * LANES
    states = np.zeros(count, STATE)
    for name in ("f", "d", "h"):
        shape = states[name].shape
        states[name] = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    states["i"] = rng.integers(0, 1 << 32, states["i"].shape, np.uint32)
    small = rng.random(states["i"].shape) < 0.3
    states["i"][small] &= 0xFF
    states["l"] = rng.integers(0, 1 << 64, states["l"].shape, np.uint64)
    for name, edges in _EDGES.items():
        flat = states[name].reshape(-1)
        with np.errstate(over="ignore"):
            for at in pick.sample(range(flat.size), flat.size // 3):
                flat[at] = pick.choice(edges)
        states[name] = flat.reshape(states[name].shape)
    table = rng.integers(0, 1 << 32, TABLE_WORDS, np.uint32)
    return Inputs(states, table, rng.integers(0, 1 << 32, count, np.uint32))


def run_host(unit: Unit, name: str, inputs: Inputs) -> NDArray[np.uint32]:
    """The words that the function writes, [lane, OUT_WORDS]."""
    out = np.zeros((GROUPS * LANES, OUT_WORDS), np.uint32)
    slots = inputs.slots.copy()
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (inputs.states, out, inputs.table, slots)]
    getattr(unit.host, name)(*pointers, ctypes.c_uint32(GROUPS))
    return out


class Card:
    """The unit's code object with its buffers on the simulator."""

    def __init__(self, hip: Hip, code_object: bytes, inputs: Inputs) -> None:
        self.hip = hip
        self.inputs = inputs
        self.module = Module(hip, code_object)
        sizes = (
            inputs.states.nbytes,
            4 * GROUPS * LANES * OUT_WORDS,
            inputs.table.nbytes,
            inputs.slots.nbytes,
        )
        self.buffers = [Buffer(hip, size) for size in sizes]
        self.buffers[0].write(inputs.states)
        self.buffers[2].write(inputs.table)

    def run(self, name: str) -> NDArray[np.uint32]:
        self.buffers[3].write(self.inputs.slots)
        arguments = struct.pack("<4Q", *(buffer.address for buffer in self.buffers))
        self.hip.launch(self.module.function(name), arguments, grid=(GROUPS, 1, 1))
        return self.buffers[1].read().view(np.uint32).reshape(-1, OUT_WORDS)

    def close(self) -> None:
        for buffer in self.buffers:
            buffer.free()
        self.module.unload()


def differences(hip: Hip, unit: Unit, level: str, names: list[str], inputs: Inputs) -> dict[str, str]:
    """Functions whose results differ or that fault, with the first difference as text."""
    card = Card(hip, unit.cards[level], inputs)
    wrong: dict[str, str] = {}
    for name in names:
        expected = run_host(unit, name, inputs)
        try:
            actual = card.run(name)
        except HipError as fault:
            wrong[name] = str(fault)
            continue
        lanes, words = np.nonzero(actual != expected)
        if lanes.size:
            lane, word = int(lanes[0]), int(words[0])
            wrong[name] = (
                f"{lanes.size} words differ; first in lane {lane}, {OUT_NAMES[word]}: "
                f"simulator {actual[lane, word]:#010x}, host {expected[lane, word]:#010x}"
            )
    card.close()
    return wrong
