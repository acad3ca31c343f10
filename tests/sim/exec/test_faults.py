"""Each kind of fault: what it names, and that the process and the next launch survive it."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Buffer, Hip, HipError, Module, simulator

BYTES = 4099  # one byte short of a dword boundary


@dataclass(frozen=True)
class Fault:
    """A kernel that must stop, launched as 3 workgroups of 128 work-items.

    `body` sees s[8:9] = a buffer of BYTES bytes, s[10:11] = read-only memory, s6 = workgroup x.
    The fault happens in workgroup 2, wave 1 and, unless it is None, in `lane`.
    """

    name: str
    body: str
    opcode: str  # what the disassembly must show
    words: tuple[str, ...]  # what the reason must mention
    lane: int | None = None
    offset: int | None = None  # of the address, from the buffer's start
    lds_bytes: int = 256
    reported: int | None = None  # the address in the text, where it is not the lane's own


# Only wave 1 of workgroup 2 goes on; lane 5 of it has v1 = the given offset, the others 0.
GUARD = """s_load_dwordx4 s[8:11], s[4:5], 0x0
    v_readfirstlane_b32 s12, v0
    s_cmp_eq_u32 s12, 64
    s_cselect_b32 s12, s6, 0
    s_cmp_lg_u32 s12, 2
    s_cbranch_scc1 {name}_end
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v2, {offset}
    v_cmp_eq_u32_e32 vcc, 69, v0
    v_cndmask_b32_e32 v1, v1, v2, vcc
    s_waitcnt lgkmcnt(0)
    {body}
    {name}_end:"""

FAULTS = [
    Fault("undefined_word", ".long 0xbfff1234", "", ("bfff1234",)),
    Fault("outside_the_simulator", "v_interp_p1_f32 v1, v2, attr0.x", "v_interp_p1", ("no semantics",)),
    Fault(
        "load_one_byte_beyond",
        "global_load_ubyte v3, v1, s[8:9]",
        "global_load_ubyte",
        ("outside",),
        5,
        BYTES,
    ),
    Fault(
        "load_dword_across_end",
        "global_load_dword v3, v1, s[8:9]",
        "global_load_dword",
        ("outside",),
        5,
        BYTES - 3,
    ),
    Fault(
        "store_one_byte_beyond",
        "global_store_byte v1, v0, s[8:9]",
        "global_store_byte",
        ("outside",),
        5,
        BYTES,
    ),
    Fault(
        "store_one_byte_before",
        "global_store_byte v1, v0, s[8:9] offset:-1",
        "global_store_byte",
        ("outside",),
        0,
        -1,
    ),
    Fault(
        "load_wide_across_end",
        "global_load_dwordx4 v[4:7], v1, s[8:9]",
        "dwordx4",
        ("outside",),
        5,
        BYTES - 15,
    ),
    Fault("misaligned_global", "global_load_dword v3, v1, s[8:9]", "global_load_dword", ("aligned",), 5, 6),
    Fault(
        "scalar_load_outside", "s_load_dword s20, s[8:9], 0x2000", "s_load_dword", ("outside",), None, 0x2000
    ),
    Fault(
        "atomic_outside", "global_atomic_add v1, v0, s[8:9]", "global_atomic_add", ("outside",), 5, BYTES - 3
    ),
    Fault(
        "store_to_read_only", "global_store_dword v1, v0, s[10:11]", "global_store_dword", ("read-only",), 0
    ),
    Fault("lds_misaligned", "ds_read_b32 v3, v1", "ds_read_b32", ("aligned",), 5, 2),
    Fault("lds_beyond_the_end", "ds_write_b32 v1, v0", "ds_write_b32", ("outside", "256"), 5, 256),
    Fault(
        "lds_across_the_end",
        "ds_read2_b32 v[4:5], v1 offset1:1",
        "ds_read2_b32",
        ("outside", "256"),
        5,
        252,
        reported=256,
    ),
    Fault("trap", "s_trap 2", "s_trap", ("s_trap",)),
    Fault("jump_into_nowhere", "s_setpc_b64 s[8:9]", "s_setpc_b64", ("jump",)),
]


def _body(fault: Fault) -> str:
    offset = fault.offset if fault.offset and fault.offset > 0 and fault.lane else 0
    return GUARD.format(name=fault.name, body=fault.body, offset=hex(offset))


@dataclass
class Bench:
    """The loaded kernels, a buffer, and read-only memory."""

    hip: Hip
    module: Module
    buffer: Buffer
    constant: np.ndarray

    def launch(self, name: str) -> None:
        arguments = struct.pack("<QQQ", self.buffer.address, self.constant.ctypes.data, 0)
        self.hip.launch(self.module.function(name), arguments, grid=(3, 1, 1), block=(128, 1, 1))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    kernels = [Kernel(f.name, _body(f), lds_bytes=f.lds_bytes, max_threads=128) for f in FAULTS]
    healthy = """s_load_dwordx2 s[8:9], s[4:5], 0x0
        v_mov_b32_e32 v1, 0
        v_mov_b32_e32 v2, 0x5afe
        s_waitcnt lgkmcnt(0)
        global_store_dword v1, v2, s[8:9]"""
    kernels.append(Kernel("healthy", healthy, max_threads=128))
    hip = simulator()
    constant = np.zeros(1024, np.uint32)
    hip.register_read_only(constant)
    with Buffer(hip, BYTES) as buffer:
        module = Module(hip, assemble(kernels))
        yield Bench(hip, module, buffer, constant)
        module.unload()
    hip.unregister(constant)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_fault(bench: Bench, fault: Fault) -> None:
    with pytest.raises(HipError) as caught:
        bench.launch(fault.name)
    assert caught.value.name == "hipErrorLaunchFailure"
    text = caught.value.fault
    assert fault.name in text, text
    assert fault.opcode in text, text
    for word in fault.words:
        assert word in text, text
    assert re.search(r"pc.*0x[0-9a-f]+", text), text
    assert re.search(r"workgroup: +\(2, 0, 0\), wave 1\b", text), text
    if fault.lane is not None:
        assert re.search(rf"lane {fault.lane}\b", text), text
    place = fault.offset if fault.reported is None else fault.reported
    if place is not None:
        base = 0 if fault.opcode.startswith("ds_") else bench.buffer.address
        assert f"{base + place:#x}" in text, text
    assert not bench.constant.any()


def test_launch_after_a_fault(bench: Bench) -> None:
    with pytest.raises(HipError):
        bench.launch("trap")
    bench.buffer.write(bytes(BYTES))
    bench.launch("healthy")
    assert bench.buffer.read()[:4].view(np.uint32)[0] == 0x5AFE


def test_padding_behind_the_program_is_not_decoded_into_a_fault() -> None:
    """Data behind s_endpgm never runs, so a code object may hold any words there."""
    hip = simulator()
    module = Module(hip, assemble([Kernel("ends", "s_endpgm\n.long 0xbfff1234\n.long 0xffffffff")]))
    hip.launch(module.function("ends"), bytes(24))
    module.unload()
