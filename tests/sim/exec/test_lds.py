"""DS opcodes: loads, stores, offset pairs, atomics, and the lane permutations."""

import random
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from tests.kit.asm import ALL_LANES, LANES, Snippet
from tests.sim.exec.build import as_lanes, partial_exec
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.formats import F32
from tests.sim.exec.ops.memory import (
    LDS_ATOMICS,
    LDS_LOADS,
    LDS_STORES,
    Access,
    Atomic,
    loaded_words,
    stored_bytes,
)
from tests.sim.exec.ops.op import FORMATS
from tests.sim.exec.ops.values import source_values

STRIDE = 16
BYTES = LANES * STRIDE
CONTENT = np.random.default_rng(4).integers(0, 256, BYTES, np.uint8).tobytes()
WAIT = "\ns_waitcnt lgkmcnt(0)\n"
# Fills LDS from Snippet.memory: 16 bytes a lane. v90 up is scratch space of these snippets.
FILL = f"""v_lshlrev_b32_e32 v90, 4, v0
global_load_dwordx4 v[92:95], v90, s[8:9]
s_waitcnt vmcnt(0)
ds_write_b128 v90, v[92:95]{WAIT}"""
# Copies LDS back, so that the whole of it can be compared.
DUMP = f"""{WAIT}s_mov_b64 exec, -1
v_lshlrev_b32_e32 v90, 4, v0
ds_read_b128 v[92:95], v90{WAIT}global_store_dwordx4 v90, v[92:95], s[8:9]"""


def places(seed: int = 0) -> list[int]:
    return [((lane * 27 + 5 + seed) % LANES) * STRIDE for lane in range(LANES)]


def with_exec(execution: int, body: str) -> str:
    """`body` under a mask that is set after the wave filled LDS."""
    if execution == ALL_LANES:
        return body
    low, high = execution & 0xFFFFFFFF, execution >> 32
    return f"s_mov_b32 exec_lo, {low:#x}\ns_mov_b32 exec_hi, {high:#x}\n{body}"


def _range_name(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def load_case(access: Access, execution: int, offset: int) -> Case:
    count = access.registers
    text = f"ds_{access.suffix} {_range_name(20, count)}, v1" + (f" offset:{offset}" if offset else "")
    body = FILL + with_exec(execution, text)
    at = places()
    rows = [loaded_words(access, CONTENT[a : a + access.size]) for a in at]
    expects = tuple(
        Expect(20 + n, "b32", [rows[i][n] if execution >> i & 1 else 0x1111 * n for i in range(LANES)])
        for n in range(count)
    )
    vgprs = {1: as_lanes([a - offset for a in at])}
    vgprs |= {20 + n: np.full(LANES, 0x1111 * n, np.uint32) for n in range(count)}
    snippet = Snippet(
        body, vgprs=vgprs, memory=CONTENT, lds_bytes=BYTES, read_vgprs=tuple(e.register for e in expects)
    )
    return Case(text, snippet, vgprs=expects)


def store_case(access: Access, execution: int, offset: int) -> Case:
    count = access.registers
    text = f"ds_{access.suffix} v1, {_range_name(20, count)}" + (f" offset:{offset}" if offset else "")
    body = FILL + with_exec(execution, text) + DUMP
    at = places(offset)
    data = [source_values("b32", n, access.suffix) for n in range(count)]
    after = bytearray(CONTENT)
    for lane in range(LANES):
        if execution >> lane & 1:
            words = [row[lane] for row in data]
            after[at[lane] : at[lane] + access.size] = stored_bytes(access, words)
    vgprs = {1: as_lanes([a - offset for a in at])} | {20 + n: as_lanes(row) for n, row in enumerate(data)}
    snippet = Snippet(body, vgprs=vgprs, memory=CONTENT, lds_bytes=BYTES)
    return Case(text, snippet, memory=bytes(after))


def access_cases() -> Iterator[Case]:
    for access in LDS_LOADS:
        yield load_case(access, ALL_LANES, 0)
        yield load_case(access, partial_exec(access.suffix), 0)
        yield load_case(access, 0, 0)
    for access in LDS_STORES:
        yield store_case(access, ALL_LANES, 0)
        yield store_case(access, partial_exec(access.suffix), 0)
        yield store_case(access, 0, 0)


def offset_cases() -> Iterator[Case]:
    """The 16-bit byte offset is unsigned and added to the address."""
    for text, place, value in (
        ("ds_read_b32 v20, v1 offset:65531", 65532, 0xCAFE0001),
        ("ds_read_u16 v20, v1 offset:769", 768, 0xCAFE),
        ("ds_read_u8 v20, v1 offset:1", 0, 0xFE),
    ):
        body = f"""v_mov_b32_e32 v2, 0xcafe0001
            v_mov_b32_e32 v3, {place:#x}
            v_mov_b32_e32 v1, 1
            ds_write_b32 v3, v2{WAIT}{text}"""
        snippet = Snippet(body, read_vgprs=(20,), lds_bytes=65536)
        yield Case(text, snippet, vgprs=(Expect(20, "b32", [value] * LANES),))


def pair_cases() -> Iterator[Case]:
    """read2 and write2: two places, offsets counted in elements (times 64 for st64)."""
    for bits, st64, first, second in (
        (32, False, 1, 3),
        (64, False, 1, 0),
        (32, True, 1, 3),
        (64, True, 0, 1),
    ):
        suffix = "st64" if st64 else ""
        size = bits // 8
        scale = size * 64 if st64 else size
        offsets = f"offset0:{first} offset1:{second}"
        base = [lane * (4 if st64 and bits == 32 else 8 if st64 else 16) % 256 for lane in range(LANES)]
        yield _read_pair(bits, suffix, offsets, base, (first * scale, second * scale))
        if not st64:
            yield _write_pair(bits, suffix, offsets, (first * scale, second * scale))
        else:
            yield _write_pair(bits, suffix, offsets, (first * scale, second * scale), step=size)


def _read_pair(bits: int, suffix: str, offsets: str, base: list[int], moves: tuple[int, int]) -> Case:
    size, count = bits // 8, bits // 32
    text = f"ds_read2{suffix}_b{bits} {_range_name(20, 2 * count)}, v1 {offsets}"
    words: list[list[int]] = []
    for lane in range(LANES):
        raw = b"".join(CONTENT[base[lane] + m : base[lane] + m + size] for m in moves)
        words.append([int.from_bytes(raw[i : i + 4], "little") for i in range(0, 2 * size, 4)])
    expects = tuple(Expect(20 + n, "b32", [row[n] for row in words]) for n in range(2 * count))
    snippet = Snippet(
        FILL + text,
        vgprs={1: as_lanes(base)},
        memory=CONTENT,
        lds_bytes=BYTES,
        read_vgprs=tuple(e.register for e in expects),
    )
    return Case(text, snippet, vgprs=expects)


def _write_pair(bits: int, suffix: str, offsets: str, moves: tuple[int, int], step: int = STRIDE) -> Case:
    """Lanes write disjoint places: a step leaves room for both elements, or they are far apart."""
    size, count = bits // 8, bits // 32
    base = [lane * step for lane in range(LANES)]
    data = [source_values("b32", n, f"pair{bits}{suffix}") for n in range(2 * count)]
    after = bytearray(CONTENT)
    for lane in range(LANES):
        words = [row[lane].to_bytes(4, "little") for row in data]
        for n, move in enumerate(moves):
            at = base[lane] + move
            after[at : at + size] = b"".join(words[n * count : (n + 1) * count])
    last = 20 + count
    text = f"ds_write2{suffix}_b{bits} v1, {_range_name(20, count)}, {_range_name(last, count)} {offsets}"
    vgprs = {1: as_lanes(base)} | {20 + n: as_lanes(row) for n, row in enumerate(data)}
    snippet = Snippet(FILL + text + DUMP, vgprs=vgprs, memory=CONTENT, lds_bytes=BYTES)
    return Case(text, snippet, memory=bytes(after))


def atomic_case(atomic: Atomic, returning: bool) -> Case:
    """Every lane its own address. Float operands come from the f32 edge values."""
    at = places(3)
    count = atomic.bits // 32
    rng = random.Random(atomic.name)
    floating = atomic.name[-3:] in FORMATS
    fmt = FORMATS.get(atomic.name[-3:], F32)
    content = bytearray(CONTENT)
    data: list[list[int]] = []
    old: list[int] = []
    wanted: list[int | None] = []
    edges = [source_values(f"f{atomic.bits}", n, atomic.name) for n in range(2)]
    for lane, place in enumerate(at):
        if floating:
            content[place : place + 4 * count] = edges[0][lane].to_bytes(4 * count, "little")
        before = int.from_bytes(content[place : place + 4 * count], "little")
        sources = [edges[1][lane] if floating else rng.choice([rng.getrandbits(atomic.bits), before, 0])]
        if atomic.sources == 2:
            sources.append(rng.getrandbits(atomic.bits))
        result = atomic.meaning(before, *sources)
        vague = floating and any(map(fmt.is_nan, (before, *sources)))  # NaN handling is not documented
        wanted.append(None if vague else result)
        data.append([s >> 32 * n & 0xFFFFFFFF for s in sources for n in range(count)])
        old.append(before)
    registers = [_range_name(30 + count * n, count) for n in range(atomic.sources)]
    vgprs = {1: as_lanes(at)} | {
        30 + n: as_lanes([row[n] for row in data]) for n in range(count * atomic.sources)
    }
    operands = f"v1, {', '.join(registers)}"
    text = f"ds_{atomic.name} {operands}"
    if returning:
        text = f"ds_{atomic.name.replace('_', '_rtn_')} {_range_name(20, count)}, {operands}"
    body = f"{FILL}{text}{WAIT}ds_read_b{atomic.bits} {_range_name(40, count)}, v1"
    expects = [Expect(40, f"b{atomic.bits}", wanted)]
    if returning:
        expects.append(Expect(20, f"b{atomic.bits}", old))
    snippet = Snippet(
        body,
        vgprs=vgprs,
        memory=bytes(content),
        lds_bytes=BYTES,
        read_vgprs=tuple(r for e in expects for r in e.registers),
    )
    return Case(text, snippet, vgprs=tuple(expects))


def exchange_cases() -> Iterator[Case]:
    for bits in (32, 64):
        count = bits // 32
        at = places(9)
        old = [int.from_bytes(CONTENT[a : a + 4 * count], "little") for a in at]
        data = source_values(f"b{bits}", 0, "exchange")
        text = f"ds_wrxchg_rtn_b{bits} {_range_name(20, count)}, v1, {_range_name(30, count)}"
        body = f"{FILL}{text}{WAIT}ds_read_b{bits} {_range_name(40, count)}, v1"
        vgprs = {1: as_lanes(at)} | {30 + n: as_lanes([v >> 32 * n for v in data]) for n in range(count)}
        expects = (Expect(20, f"b{bits}", old), Expect(40, f"b{bits}", data))
        registers = tuple(r for e in expects for r in e.registers)
        snippet = Snippet(body, vgprs=vgprs, memory=CONTENT, lds_bytes=BYTES, read_vgprs=registers)
        yield Case(text, snippet, vgprs=expects)


def collision_cases() -> Iterator[Case]:
    """All lanes on one address: none of the additions is lost."""
    body = f"""v_mov_b32_e32 v1, 0
        v_mov_b32_e32 v3, 0
        ds_write_b32 v1, v3{WAIT}ds_add_u32 v1, v2{WAIT}ds_read_b32 v20, v1"""
    data = [lane * 5 + 2 for lane in range(LANES)]
    snippet = Snippet(body, vgprs={2: as_lanes(data)}, read_vgprs=(20,), lds_bytes=64)
    yield Case(body, snippet, vgprs=(Expect(20, "b32", [sum(data)] * LANES),))


def counter_cases() -> Iterator[Case]:
    """ds_append and ds_consume: one counter, moved by the number of active lanes."""
    for name, sign in (("ds_append", 1), ("ds_consume", -1)):
        execution = partial_exec(name)
        start = f"""v_mov_b32_e32 v1, 0x20
            v_mov_b32_e32 v2, 0x64
            ds_write_b32 v1, v2{WAIT}s_movk_i32 m0, 0x1c
            """
        text = f"{name} v20 offset:4"
        body = start + with_exec(execution, text) + WAIT + "s_mov_b64 exec, -1\nds_read_b32 v21, v1"
        old = [0x64 if execution >> lane & 1 else 0x77 for lane in range(LANES)]
        after = 0x64 + sign * execution.bit_count()
        vgprs = {20: np.full(LANES, 0x77, np.uint32)}
        snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20, 21), lds_bytes=256)
        yield Case(text, snippet, vgprs=(Expect(20, "b32", old), Expect(21, "b32", [after] * LANES)))


def permute_cases() -> Iterator[Case]:
    data = source_values("b32", 0, "permute")
    rng = random.Random(8)
    for execution in (ALL_LANES, partial_exec("permute")):
        active = [execution >> i & 1 for i in range(LANES)]
        start = {2: as_lanes(data), 20: np.full(LANES, 0x77, np.uint32)}
        # backward: lane i reads from lane (address / 4) mod 64; an inactive lane gives 0
        addresses = [rng.randrange(0, 1024) for _ in range(LANES)]
        source = [a // 4 % LANES for a in addresses]
        pulled = [(data[s] if active[s] else 0) if active[i] else 0x77 for i, s in enumerate(source)]
        body = "ds_bpermute_b32 v20, v1, v2"
        yield _permute_case(body, start | {1: as_lanes(addresses)}, execution, pulled)
        moved = [data[(s + 1) % LANES] for s in source]  # the offset is added to the address
        shifted = [
            (moved[i] if active[(source[i] + 1) % LANES] else 0) if active[i] else 0x77 for i in range(LANES)
        ]
        yield _permute_case(body + " offset:4", start | {1: as_lanes(addresses)}, execution, shifted)
        # forward: lane i sends to lane (address / 4) mod 64; a lane that got nothing holds 0
        targets = list(range(LANES))
        rng.shuffle(targets)
        pushed = [0] * LANES
        for lane, target in enumerate(targets):
            if active[lane]:
                pushed[target] = data[lane]
        pushed = [pushed[i] if active[i] else 0x77 for i in range(LANES)]
        body = "ds_permute_b32 v20, v1, v2"
        yield _permute_case(body, start | {1: as_lanes([4 * t for t in targets])}, execution, pushed)


def _permute_case(body: str, vgprs: dict, execution: int, lanes: list[int]) -> Case:
    snippet = Snippet(body, vgprs=vgprs, exec=execution, read_vgprs=(20,))
    return Case(body, snippet, vgprs=(Expect(20, "b32", lanes),))


def swizzle_source(offset: int, lane: int) -> int:
    """The lane that ds_swizzle_b32 reads: quad permutation, or and/or/xor on five bits."""
    if offset & 0x8000:
        return lane & ~3 | offset >> 2 * (lane & 3) & 3
    keep, force, flip = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return lane & 32 | ((lane & 31 & keep | force) ^ flip)


def swizzle_cases() -> Iterator[Case]:
    data = source_values("b32", 0, "swizzle")
    rng = random.Random(9)
    offsets = [0x8000 | rng.getrandbits(8) for _ in range(3)]
    offsets += [0x1F | flip << 10 for flip in (1, 2, 4, 8, 16, 31)]
    offsets += [rng.getrandbits(15) for _ in range(4)]
    for offset in offsets:
        for execution in (ALL_LANES, partial_exec(str(offset))):
            active = [execution >> i & 1 for i in range(LANES)]
            lanes = []
            for lane in range(LANES):
                source = swizzle_source(offset, lane)
                lanes.append((data[source] if active[source] else 0) if active[lane] else 0x77)
            body = f"ds_swizzle_b32 v20, v2 offset:{offset:#x}"
            vgprs = {2: as_lanes(data), 20: np.full(LANES, 0x77, np.uint32)}
            yield _permute_case(body, vgprs, execution, lanes)


def both_atomics(atomic: Atomic) -> list[Case]:
    return [atomic_case(atomic, returning=False), atomic_case(atomic, returning=True)]


BATCH = Batch(
    {f"ds_{atomic.name}": partial(both_atomics, atomic) for atomic in LDS_ATOMICS}
    | {
        "access": access_cases,
        "offset": offset_cases,
        "pairs": pair_cases,
        "exchange": exchange_cases,
        "collisions": collision_cases,
        "counters": counter_cases,
        "permute": permute_cases,
        "swizzle": swizzle_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_lds(group: str) -> None:
    BATCH.check(group)
