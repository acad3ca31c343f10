"""Buffer instructions are timed by the memory that they reach."""

import json
import struct
from typing import Any

import pytest

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Buffer, Module, simulator

BYTES = 4096
# s[8:9]: the buffer. v1: 16 bytes a lane. s[20:23]: a raw buffer of `records` bytes.
SETUP = """s_load_dwordx2 s[8:9], s[4:5], 0x0
v_lshlrev_b32 v1, 4, v0
v_mov_b32 v2, 0
v_mov_b32 v3, 0
v_mov_b32 v4, 0
v_mov_b32 v5, 0
s_waitcnt lgkmcnt(0)
s_mov_b32 s20, s8
s_mov_b32 s21, s9
s_movk_i32 s22, {records}
s_mov_b32 s23, 0x27000
{instruction}
s_waitcnt vmcnt(0)"""
LOAD, STORE = (
    "buffer_load_dwordx4 v[2:5], v1, s[20:23], 0 offen",
    "buffer_store_dwordx4 v[2:5], v1, s[20:23], 0",
)
KERNELS = {
    "global": ("global_load_dwordx4 v[2:5], v1, s[8:9]", BYTES),
    "whole": (LOAD, BYTES),
    "moved": (f"s_movk_i32 s30, 0x100\n{LOAD.replace(' 0 ', ' s30 ')} offset:256", BYTES),
    "half": (LOAD, 512),
    "indexed": ("s_or_b32 s21, s21, 0x100000\n" + LOAD.replace("offen", "idxen").replace("v1,", "v0,"), 64),
    "uniform": (LOAD.replace("v1,", "off,").removesuffix(" offen"), BYTES),
    "store": (f"{STORE} offen", BYTES),
}


@pytest.fixture(scope="module")
def profiles() -> dict[str, dict[str, Any]]:
    kernels = [
        Kernel(name, SETUP.format(instruction=instruction, records=records))
        for name, (instruction, records) in KERNELS.items()
    ]
    hip = simulator()
    with Module(hip, assemble(kernels)) as module, Buffer(hip, BYTES) as memory:
        arguments = struct.pack("<QQQ", memory.address, 0, 0)
        return {name: json.loads(hip.launch_timed(module.function(name), arguments)) for name in KERNELS}


@pytest.mark.parametrize(
    ("name", "lines"),
    [("global", 16), ("whole", 16), ("moved", 16), ("half", 8), ("indexed", 16), ("uniform", 1)],
)
def test_a_load_asks_for_the_lines_inside_the_buffer(profiles, name: str, lines: int) -> None:
    assert profiles[name]["bytes"]["l1"] == 64 * lines


def test_a_store_reaches_hbm(profiles) -> None:
    assert profiles["store"]["bytes"]["hbm_write"] == 1024


def test_a_buffer_load_takes_as_long_as_a_global_one(profiles) -> None:
    assert profiles["whole"]["clocks"] == pytest.approx(profiles["global"]["clocks"], abs=16)
