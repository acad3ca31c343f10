"""GLOBAL, FLAT and MUBUF: loads, stores, atomics and their addressing forms."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from tests.kit.asm import ALL_LANES, LANES, Lanes, Snippet
from tests.sim.exec.build import as_lanes, partial_exec
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.ops.memory import (
    VMEM_ATOMICS,
    VMEM_LOADS,
    VMEM_STORES,
    Access,
    Atomic,
    loaded_words,
    stored_bytes,
)
from tests.sim.exec.ops.values import source_values

STRIDE = 16
BYTES = LANES * STRIDE + 32
MEMORY = np.random.default_rng(2).integers(0, 256, BYTES, np.uint8).tobytes()

# v[1:2] = s[8:9] + the signed offset in v1
ADDRESS_64 = """v_ashrrev_i32_e32 v3, 31, v1
v_mov_b32_e32 v2, s9
v_add_co_u32_e32 v1, vcc, s8, v1
v_addc_co_u32_e32 v2, vcc, v3, v2, vcc
"""
RESOURCE = "s_mov_b32 s20, s8\ns_mov_b32 s21, s9\ns_movk_i32 s22, 0x420\ns_mov_b32 s23, 0x27000\n"


@dataclass(frozen=True)
class Form:
    """An addressing form: set-up, what stands for the address, and the bytes it adds by itself."""

    prefix: str
    setup: str
    address: str
    tail: str = ""
    moved: int = 0  # added to v1 beforehand, and taken back by the instruction's offset
    shift: int = 0  # added by the instruction to every address


FORMS = {
    "global": Form("global", ADDRESS_64, "v[1:2]", "off"),
    "global offset": Form("global", ADDRESS_64, "v[1:2]", "off offset:-8", moved=8),
    "global saddr": Form("global", "", "v1", "s[8:9]"),
    "global saddr offset": Form("global", "", "v1", "s[8:9] offset:-16", moved=16),
    "flat": Form("flat", ADDRESS_64, "v[1:2]"),
    "flat offset": Form("flat", ADDRESS_64, "v[1:2]", "offset:16", moved=-16),
    "buffer offen": Form("buffer", RESOURCE, "v1", "s[20:23], 0 offen"),
    "buffer soffset": Form("buffer", RESOURCE, "v1", "s[20:23], s30 offen offset:4", shift=12),
}
SOFFSET = 8


def _lane_offsets(form: Form) -> list[int]:
    """Each lane's place in memory: a permutation, so that lanes are not in address order."""
    return [((lane * 29 + 3) % LANES) * STRIDE + form.shift for lane in range(LANES)]


def _range_name(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _address_register(form: Form) -> Lanes:
    return as_lanes([offset - form.shift + form.moved for offset in _lane_offsets(form)])


def _text(form: Form, name: str, data: str, extra: str = "") -> str:
    load = "load" in name or extra == "glc"
    if form.prefix == "buffer":
        return f"buffer_{name} {data}, {form.address}, {form.tail} {extra}".rstrip()
    target, _, source = data.partition("|")
    operands = [target, form.address] + ([source] if source else []) if load else [form.address, data]
    tail = form.tail.split(" ", 1)
    if form.prefix == "global":
        operands.append(tail.pop(0))
    return f"{form.prefix}_{name} {', '.join(operands)} {' '.join(t for t in tail if t)} {extra}".rstrip()


def load_case(form: Form, access: Access, execution: int) -> Case:
    offsets = _lane_offsets(form)
    count = access.registers
    body = form.setup + _text(form, access.suffix, _range_name(20, count))
    words = [loaded_words(access, MEMORY[at : at + access.size]) for at in offsets]
    expects = []
    for n in range(count):
        lanes = [words[i][n] if execution >> i & 1 else 0x1111 * n for i in range(LANES)]
        expects.append(Expect(20 + n, "b32", lanes))
    vgprs = {1: _address_register(form)} | {
        20 + n: np.full(LANES, 0x1111 * n, np.uint32) for n in range(count)
    }
    snippet = Snippet(
        body,
        vgprs=vgprs,
        sgprs={30: SOFFSET},
        exec=execution,
        memory=MEMORY,
        read_vgprs=tuple(e.register for e in expects),
    )
    return Case(body, snippet, vgprs=tuple(expects), memory=MEMORY)


def store_case(form: Form, access: Access, execution: int) -> Case:
    offsets = _lane_offsets(form)
    count = access.registers
    body = form.setup + _text(form, access.suffix, _range_name(20, count))
    data = [source_values("b32", n, access.suffix) for n in range(count)]
    after = bytearray(MEMORY)
    for lane in range(LANES):
        if execution >> lane & 1:
            at = offsets[lane]
            after[at : at + access.size] = stored_bytes(access, [row[lane] for row in data])
    vgprs = {1: _address_register(form)} | {20 + n: as_lanes(row) for n, row in enumerate(data)}
    snippet = Snippet(body, vgprs=vgprs, sgprs={30: SOFFSET}, exec=execution, memory=MEMORY)
    return Case(body, snippet, memory=bytes(after))


def atomic_case(form: Form, atomic: Atomic, returning: bool) -> Case:
    """Every lane its own address; for cmpswap half of the lanes compare equal."""
    offsets = _lane_offsets(form)
    width = atomic.bits // 32
    rng = random.Random(atomic.name)
    memory = bytearray(MEMORY)
    data: list[list[int]] = []
    old: list[int] = []
    for lane, at in enumerate(offsets):
        before = int.from_bytes(memory[at : at + 4 * width], "little")
        sources = [rng.choice([rng.getrandbits(atomic.bits), before, before - 1, 0]) % (1 << atomic.bits)]
        if atomic.sources == 2:
            sources.append(before if lane % 2 else rng.getrandbits(atomic.bits))
        memory[at : at + 4 * width] = atomic.meaning(before, *sources).to_bytes(4 * width, "little")
        data.append([value >> 32 * n & 0xFFFFFFFF for value in sources for n in range(width)])
        old.append(before)
    count = width * atomic.sources
    source = _range_name(30, count)
    vgprs = {1: _address_register(form)} | {30 + n: as_lanes([row[n] for row in data]) for n in range(count)}
    if not returning:
        body = form.setup + _text(form, atomic.name, source)
        return Case(body, Snippet(body, vgprs=vgprs, memory=MEMORY), memory=bytes(memory))
    if form.prefix == "buffer":  # the old value replaces the data
        body = form.setup + _text(form, atomic.name, source, "glc")
        first = 30
    else:
        body = form.setup + _text(form, atomic.name, f"{_range_name(20, width)}|{source}", "glc")
        first = 20
    expect = Expect(first, f"b{atomic.bits}", old)
    snippet = Snippet(body, vgprs=vgprs, memory=MEMORY, read_vgprs=expect.registers)
    return Case(body, snippet, vgprs=(expect,), memory=bytes(memory))


def access_cases(form: Form) -> Iterator[Case]:
    for access in VMEM_LOADS:
        yield load_case(form, access, ALL_LANES)
    for access in VMEM_STORES:
        yield store_case(form, access, ALL_LANES)
    for execution in (partial_exec(form.tail), 1 << 63, 0):
        yield load_case(form, VMEM_LOADS[4], execution)
        yield store_case(form, VMEM_STORES[4], execution)
        yield load_case(form, VMEM_LOADS[7], execution)
        yield store_case(form, VMEM_STORES[7], execution)


def atomic_cases(form: Form) -> Iterator[Case]:
    for atomic in VMEM_ATOMICS:
        yield atomic_case(form, atomic, returning=False)
        yield atomic_case(form, atomic, returning=True)


def collision_cases() -> Iterator[Case]:
    """All lanes on one address: none of the additions is lost."""
    body = "v_mov_b32_e32 v1, 0\nglobal_atomic_add v1, v2, s[8:9]\nglobal_atomic_umax v1, v2, s[8:9] offset:4"
    data = [lane * 3 + 1 for lane in range(LANES)]
    snippet = Snippet(body, vgprs={2: as_lanes(data)}, memory=bytes(8))
    after = sum(data).to_bytes(4, "little") + max(data).to_bytes(4, "little")
    yield Case(body, snippet, memory=after)


def buffer_range_cases() -> Iterator[Case]:
    """Behind num_records a raw buffer reads zero and drops stores."""
    resource = RESOURCE.replace("0x420", "0x80")
    offsets = [lane * 16 for lane in range(LANES)]
    body = f"""{resource}buffer_load_dword v20, v1, s[20:23], 0 offen
        buffer_store_dword v21, v1, s[20:23], 0 offen offset:4"""
    after = bytearray(MEMORY)
    lanes = []
    for lane, at in enumerate(offsets):
        inside = at < 0x80
        lanes.append(int.from_bytes(MEMORY[at : at + 4], "little") if inside else 0)
        if inside:
            after[at + 4 : at + 8] = lane.to_bytes(4, "little")
    vgprs = {1: as_lanes(offsets), 21: as_lanes(list(range(LANES)))}
    snippet = Snippet(body, vgprs=vgprs, memory=MEMORY, read_vgprs=(20,))
    yield Case(body, snippet, vgprs=(Expect(20, "b32", lanes),), memory=bytes(after))


def buffer_index_cases() -> Iterator[Case]:
    """idxen scales by the resource's stride; bothen adds a byte offset."""
    resource = RESOURCE.replace("s_mov_b32 s21, s9", "s_or_b32 s21, s9, 0x100000").replace(
        "0x420", "64"
    )  # stride 16
    index = [(lane * 7) % LANES for lane in range(LANES)]
    for text, tail, add in (
        ("v1", "idxen", lambda lane: 0),
        ("v1", "idxen offset:12", lambda lane: 12),
        ("v[1:2]", "idxen offen", lambda lane: 4 * (lane % 4)),
    ):
        body = resource + f"buffer_load_dword v20, {text}, s[20:23], 0 {tail}"
        at = [index[lane] * 16 + add(lane) for lane in range(LANES)]
        lanes = [int.from_bytes(MEMORY[a : a + 4], "little") for a in at]
        vgprs = {1: as_lanes(index), 2: as_lanes([4 * (lane % 4) for lane in range(LANES)])}
        snippet = Snippet(body, vgprs=vgprs, memory=MEMORY, read_vgprs=(20,))
        yield Case(body, snippet, vgprs=(Expect(20, "b32", lanes),))
    body = RESOURCE + "buffer_load_dwordx2 v[20:21], off, s[20:23], s30 offset:8"
    words = [int.from_bytes(MEMORY[16 + 4 * n : 20 + 4 * n], "little") for n in range(2)]
    snippet = Snippet(body, sgprs={30: 8}, memory=MEMORY, read_vgprs=(20, 21))
    yield Case(body, snippet, vgprs=tuple(Expect(20 + n, "b32", [words[n]] * LANES) for n in range(2)))


def scratch_cases() -> Iterator[Case]:
    """Private memory: through the swizzled resource s[0:3], and through the flat aperture."""
    body = """s_add_u32 s0, s0, s79
        s_addc_u32 s1, s1, 0
        buffer_store_dword v2, off, s[0:3], 0 offset:8
        buffer_store_dword v1, off, s[0:3], 0 offset:12
        s_waitcnt vmcnt(0)
        buffer_load_dword v20, off, s[0:3], 0 offset:8
        buffer_load_dword v21, v3, s[0:3], 0 offen"""
    data = [source_values("b32", n, "scratch") for n in range(2)]
    where = [8 if lane % 3 else 12 for lane in range(LANES)]
    picked = [data[1][i] if where[i] == 8 else data[0][i] for i in range(LANES)]
    vgprs = {1: as_lanes(data[0]), 2: as_lanes(data[1]), 3: as_lanes(where)}
    expects = (Expect(20, "b32", data[1]), Expect(21, "b32", picked))
    yield Case(body, Snippet(body, vgprs=vgprs, read_vgprs=(20, 21), scratch_bytes=64), vgprs=expects)
    flat = """s_add_u32 flat_scratch_lo, s6, s79
        s_addc_u32 flat_scratch_hi, s7, 0
        s_mov_b64 s[20:21], src_private_base
        v_mov_b32_e32 v11, s21
        v_mov_b32_e32 v10, 8
        flat_store_dword v[10:11], v2
        flat_store_dword v[10:11], v1 offset:4
        s_waitcnt vmcnt(0) lgkmcnt(0)
        flat_load_dword v20, v[10:11]
        v_mov_b32_e32 v10, v3
        flat_load_dword v21, v[10:11]
        s_waitcnt vmcnt(0) lgkmcnt(0)"""
    yield Case(flat, Snippet(flat, vgprs=vgprs, read_vgprs=(20, 21), scratch_bytes=64), vgprs=expects)


def flat_lds_cases() -> Iterator[Case]:
    """A flat address in the LDS aperture reaches LDS."""
    body = """s_mov_b64 s[20:21], src_shared_base
        v_mov_b32_e32 v3, s21
        v_mov_b32_e32 v2, v1
        flat_store_dword v[2:3], v4
        s_waitcnt vmcnt(0) lgkmcnt(0)
        ds_read_b32 v20, v1
        s_waitcnt lgkmcnt(0)
        v_add_u32_e32 v20, 1, v20
        ds_write_b32 v1, v20
        s_waitcnt lgkmcnt(0)
        flat_load_dword v21, v[2:3]
        s_waitcnt vmcnt(0) lgkmcnt(0)"""
    data = source_values("b32", 0, "flat lds")
    vgprs = {1: as_lanes([lane * 4 for lane in range(LANES)]), 4: as_lanes(data)}
    wanted = [(value + 1) & 0xFFFFFFFF for value in data]
    snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20, 21), lds_bytes=256)
    yield Case(body, snippet, vgprs=(Expect(20, "b32", wanted), Expect(21, "b32", wanted)))


BATCH = Batch(
    {name: partial(access_cases, form) for name, form in FORMS.items()}
    | {
        f"{name} atomics": partial(atomic_cases, FORMS[name])
        for name in ("global", "global saddr", "flat", "buffer offen")
    }
    | {
        "collisions": collision_cases,
        "buffer range": buffer_range_cases,
        "buffer index": buffer_index_cases,
        "scratch": scratch_cases,
        "flat to LDS": flat_lds_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_vector_memory(group: str) -> None:
    BATCH.check(group)
