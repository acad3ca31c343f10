"""v_cmp, v_cmpx and v_cmp_class: all types, predicates and encodings."""

import random
from collections.abc import Iterator
from functools import partial

import pytest

from tests.kit.asm import ALL_LANES, LANES, Lanes, Snippet
from tests.sim.exec.build import SELECTS, as_lanes, partial_exec, register_name
from tests.sim.exec.case import Batch, Case
from tests.sim.exec.formats import Format
from tests.sim.exec.ops.compare import (
    INTEGER_KINDS,
    INTEGER_PREDICATES,
    Predicate,
    classify,
    float_predicates,
)
from tests.sim.exec.ops.op import FORMATS, decode, is_float, signed, width
from tests.sim.exec.ops.values import registers, source_values

KINDS = [*FORMATS, *INTEGER_KINDS]


def predicates(kind: str) -> dict[str, Predicate]:
    return float_predicates(kind) if is_float(kind) else INTEGER_PREDICATES


def _sources(kind: str, seed: str) -> tuple[list[list[int]], dict[int, Lanes]]:
    """Two sources in which a third of the lanes hold equal values."""
    left, right = source_values(kind, 0, seed), source_values(kind, 1, seed)
    right = [left[i] if i % 3 == 0 else right[i] for i in range(LANES)]
    vgprs: dict[int, Lanes] = {}
    for first, values in ((1, left), (3, right)):
        vgprs |= {first + n: row for n, row in enumerate(registers(kind, values, f"{seed}{first}"))}
    return [left, right], vgprs


def _mask(kind: str, predicate: Predicate, values: list[list[int]], execution: int = ALL_LANES) -> int:
    hit = (predicate(decode(kind, a), decode(kind, b)) for a, b in zip(*values, strict=True))
    return sum(1 << lane for lane, true in enumerate(hit) if true) & execution


def _modified(kind: str, values: list[int], negative: bool, absolute: bool) -> list[int]:
    sign = FORMATS[kind].sign_bit
    out = [v & ~sign if absolute else v for v in values]
    return [v ^ sign for v in out] if negative else out


def _plain_cases(kind: str, name: str, predicate: Predicate) -> Iterator[Case]:
    values, vgprs = _sources(kind, name)
    mask = _mask(kind, predicate, values)
    a, b = (register_name(first, width(kind)) for first in (1, 3))
    body = f"v_cmp_{name}_{kind}_e32 vcc, {a}, {b}"
    yield Case(body, Snippet(body, vgprs=vgprs), vcc=mask, exec=ALL_LANES)
    body = f"v_cmpx_{name}_{kind}_e32 vcc, {a}, {b}"
    yield Case(body, Snippet(body, vgprs=vgprs), vcc=mask, exec=mask)

    execution = partial_exec(name + kind)
    pair = {40: 0xFFFF_FFFF, 41: 0xFFFF_FFFF}
    left, right = values
    text = f"{a}, {b}"
    if is_float(kind):
        left, right = _modified(kind, left, True, True), _modified(kind, right, True, False)
        text = f"-|{a}|, -{b}"
    mask = _mask(kind, predicate, [left, right], execution)
    sgprs = {40: mask & 0xFFFFFFFF, 41: mask >> 32}
    for opcode, after in (("v_cmp", execution), ("v_cmpx", mask)):
        body = f"{opcode}_{name}_{kind}_e64 s[40:41], {text}"
        snippet = Snippet(body, vgprs=vgprs, sgprs=pair, exec=execution, read_sgprs=(40, 41))
        yield Case(body, snippet, sgprs=sgprs, exec=after)


def _sdwa_case(kind: str, name: str, predicate: Predicate) -> Case:
    rng = random.Random(name + kind)
    _, vgprs = _sources(kind, name)
    part = {"f16": ("WORD_0", "WORD_1"), "f32": ("DWORD",)}.get(kind, tuple(SELECTS))
    picks = [rng.choice(part) for _ in range(2)]
    sext = [not is_float(kind) and rng.random() < 0.5 for _ in range(2)]
    values = []
    for row, pick, sign in zip((vgprs[1], vgprs[3]), picks, sext, strict=True):
        start, size = SELECTS[pick]
        fields = [int(word) >> start & ((1 << size) - 1) for word in row]
        values.append([signed(v, size) & 0xFFFFFFFF for v in fields] if sign else fields)
    texts = [f"sext({r})" if sign else r for r, sign in zip(("v1", "v3"), sext, strict=True)]
    body = (
        f"v_cmp_{name}_{kind}_sdwa s[40:41], {texts[0]}, {texts[1]} src0_sel:{picks[0]} src1_sel:{picks[1]}"
    )
    mask = _mask(kind, predicate, values)
    snippet = Snippet(body, vgprs=vgprs, read_sgprs=(40, 41))
    return Case(body, snippet, sgprs={40: mask & 0xFFFFFFFF, 41: mask >> 32})


def compare_cases(kind: str) -> list[Case]:
    cases: list[Case] = []
    for name, predicate in predicates(kind).items():
        cases += _plain_cases(kind, name, predicate)
        if width(kind) < 64:
            cases.append(_sdwa_case(kind, name, predicate))
    return cases


def _class_case(fmt: Format, kind: str, opcode: str, wanted: list[int], wanted_text: str) -> Case:
    values = source_values(kind, 0, opcode)
    rows = registers(kind, values, opcode)
    vgprs = {1 + n: row for n, row in enumerate(rows)} | {3: as_lanes(wanted)}
    hits = (classify(fmt, v) & w for v, w in zip(values, wanted, strict=True))
    mask = sum(1 << lane for lane, hit in enumerate(hits) if hit)
    body = f"{opcode}_class_{kind}_e64 s[40:41], {register_name(1, fmt.width)}, {wanted_text}"
    after = mask if opcode == "v_cmpx" else ALL_LANES
    snippet = Snippet(body, vgprs=vgprs, read_sgprs=(40, 41), sgprs={50: wanted[0]})
    return Case(body, snippet, sgprs={40: mask & 0xFFFFFFFF, 41: mask >> 32}, exec=after)


def class_cases(kind: str) -> list[Case]:
    fmt = FORMATS[kind]
    cases = [_class_case(fmt, kind, "v_cmp", [1 << bit] * LANES, "s50") for bit in range(10)]
    mixed = [random.Random(kind).getrandbits(10) for _ in range(LANES)]
    cases.append(_class_case(fmt, kind, "v_cmp", mixed, "v3"))
    cases.append(_class_case(fmt, kind, "v_cmpx", mixed, "v3"))
    return cases


BATCH = Batch(
    {kind: partial(compare_cases, kind) for kind in KINDS}
    | {f"class {kind}": partial(class_cases, kind) for kind in FORMATS}
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_compare(group: str) -> None:
    BATCH.check(group)
