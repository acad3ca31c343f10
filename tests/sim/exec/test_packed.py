"""VOP3P: packed 16-bit arithmetic, mixed precision fma, and dot products."""

import dataclasses
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tests.kit.asm import LANES, Lanes, Snippet
from tests.sim.exec import formats
from tests.sim.exec.build import as_lanes, partial_exec
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.formats import F16, F32
from tests.sim.exec.ops.op import decode, is_float, signed
from tests.sim.exec.ops.values import source_values
from tests.sim.exec.ops.vop3 import saturate

Half = Callable[..., int]


@dataclasses.dataclass(frozen=True)
class Packed:
    """An opcode that works on both halves; `meaning` is one half."""

    name: str
    kind: str
    arity: int
    meaning: Half


def _mad(a: int, b: int, c: int) -> int:
    return a * b + c


PACKED = [
    Packed("v_pk_add_i16", "i16", 2, lambda a, b: a + b),
    Packed("v_pk_sub_i16", "i16", 2, lambda a, b: a - b),
    Packed("v_pk_add_u16", "u16", 2, lambda a, b: a + b),
    Packed("v_pk_sub_u16", "u16", 2, lambda a, b: a - b),
    Packed("v_pk_mad_i16", "i16", 3, _mad),
    Packed("v_pk_mad_u16", "u16", 3, _mad),
    Packed("v_pk_mul_lo_u16", "u16", 2, lambda a, b: a * b),
    Packed("v_pk_max_i16", "i16", 2, max),
    Packed("v_pk_min_i16", "i16", 2, min),
    Packed("v_pk_max_u16", "u16", 2, max),
    Packed("v_pk_min_u16", "u16", 2, min),
    Packed("v_pk_lshlrev_b16", "u16", 2, lambda n, a: a << (n & 15)),
    Packed("v_pk_lshrrev_b16", "u16", 2, lambda n, a: a >> (n & 15)),
    Packed("v_pk_ashrrev_i16", "i16", 2, lambda n, a: a >> (n & 15)),
    Packed("v_pk_add_f16", "f16", 2, lambda a, b: formats.add(F16, a, b)),
    Packed("v_pk_mul_f16", "f16", 2, lambda a, b: formats.multiply(F16, a, b)),
    Packed("v_pk_fma_f16", "f16", 3, lambda a, b, c: formats.fma(F16, a, b, c)),
    Packed("v_pk_max_f16", "f16", 2, lambda a, b: formats.maximum(F16, a, b)),
    Packed("v_pk_min_f16", "f16", 2, lambda a, b: formats.minimum(F16, a, b)),
]
CLAMPED = ("v_pk_add_i16", "v_pk_sub_i16", "v_pk_add_u16", "v_pk_sub_u16")


@dataclasses.dataclass(frozen=True)
class Pick:
    """op_sel & co: bit i belongs to source i."""

    op_sel: int = 0
    op_sel_hi: int = 7
    neg_lo: int = 0
    neg_hi: int = 0
    clamp: bool = False

    def text(self, arity: int) -> str:
        def bits(value: int) -> str:
            return ",".join(str(value >> i & 1) for i in range(arity))

        parts = [f"op_sel:[{bits(self.op_sel)}]", f"op_sel_hi:[{bits(self.op_sel_hi)}]"]
        parts += [f"neg_lo:[{bits(self.neg_lo)}]"] if self.neg_lo else []
        parts += [f"neg_hi:[{bits(self.neg_hi)}]"] if self.neg_hi else []
        return " ".join(parts + ["clamp"] * self.clamp)


def _rows(kind: str, arity: int, seed: str) -> list[list[int]]:
    """Sources with independent 16-bit values in both halves."""
    halves = [[source_values(kind, 2 * i + n, seed) for n in range(2)] for i in range(arity)]
    for i in range(arity):
        random.Random(f"{seed}{i}").shuffle(halves[i][1])
    return [[lo | hi << 16 for lo, hi in zip(*pair, strict=True)] for pair in halves]


def _half(op: Packed, pick: Pick, words: list[int], high: bool) -> int:
    chosen = pick.op_sel_hi if high else pick.op_sel
    negated = pick.neg_hi if high else pick.neg_lo
    values = []
    for i, word in enumerate(words):
        bits = word >> 16 if chosen >> i & 1 else word & 0xFFFF
        if is_float(op.kind) and negated >> i & 1:
            bits ^= 0x8000
        values.append(decode(op.kind, bits))
    result = op.meaning(*values)
    if pick.clamp and is_float(op.kind):
        nan_or_negative = F16.is_nan(result) or F16.is_negative(result)
        return 0 if nan_or_negative else min(result, 0x3C00)
    if pick.clamp:
        limits = (-32768, 32767) if op.kind == "i16" else (0, 65535)
        return saturate(result, limits)
    return result & 0xFFFF


def _packed_case(op: Packed, pick: Pick, execution: int, constant: tuple[str, int] | None = None) -> Case:
    """`constant` replaces the last source: its text and its 32 bits."""
    rows = _rows(op.kind, op.arity, op.name)
    texts = [f"v{1 + i}" for i in range(op.arity)]
    words = list(rows)
    if constant:
        texts[-1] = constant[0]
        words[-1] = [constant[1]] * LANES
    body = f"{op.name} v20, {', '.join(texts)} {pick.text(op.arity)}"
    vgprs = {1 + i: as_lanes(row) for i, row in enumerate(rows)}
    before = as_lanes(source_values("b32", 0, op.name))
    low: list[int] = []
    high: list[int] = []
    for lane in range(LANES):
        if execution >> lane & 1:
            sources = [word[lane] for word in words]
            low.append(_half(op, pick, sources, high=False) & 0xFFFF)
            high.append(_half(op, pick, sources, high=True) & 0xFFFF)
        else:
            low.append(int(before[lane]) & 0xFFFF)
            high.append(int(before[lane]) >> 16)
    split = "\nv_lshrrev_b32_e32 v21, 16, v20\nv_and_b32_e32 v20, 0xffff, v20"
    body += f"\ns_mov_b64 exec, -1{split}"
    snippet = Snippet(body, vgprs=vgprs | {20: before}, exec=execution, read_vgprs=(20, 21))
    kind = op.kind if is_float(op.kind) else "b16"
    halves = ((20, low), (21, high))
    expects = tuple(Expect(r, kind, lanes, zero_sign_free=pick.clamp) for r, lanes in halves)
    return Case(body, snippet, vgprs=expects)


def packed_cases(op: Packed) -> list[Case]:
    rng = random.Random(op.name)
    everything = (1 << LANES) - 1
    cases = [_packed_case(op, Pick(), everything), _packed_case(op, Pick(), partial_exec(op.name))]
    for _ in range(4):
        neg = rng.getrandbits(2 * op.arity) if is_float(op.kind) else 0
        pick = Pick(rng.getrandbits(op.arity), rng.getrandbits(op.arity), neg & 7, neg >> op.arity & 7)
        cases.append(_packed_case(op, pick, everything))
    if is_float(op.kind) or op.name in CLAMPED:
        cases.append(_packed_case(op, Pick(clamp=True), everything))
    # An inline constant sits in the low half; op_sel_hi 0 repeats it for the high half.
    last = 1 << (op.arity - 1)
    constant = ("0.5", 0x3800) if is_float(op.kind) else ("5", 5)
    cases.append(_packed_case(op, Pick(), everything, constant))
    cases.append(_packed_case(op, Pick(op_sel_hi=7 & ~last), everything, constant))
    return cases


def _mix_source(word: int, index: int, pick: Pick, absolute: int) -> int:
    """A whole f32, or one half as f16, widened; bit i of op_sel_hi says which."""
    if pick.op_sel_hi >> index & 1:
        half = word >> 16 if pick.op_sel >> index & 1 else word & 0xFFFF
        value = formats.convert(F16, F32, half)
    else:
        value = word
    value = value & 0x7FFFFFFF if absolute >> index & 1 else value
    return value ^ 0x80000000 if pick.neg_lo >> index & 1 else value


def _mix_case(name: str, pick: Pick, absolute: int) -> Case:
    rng = random.Random(f"{name}{pick}{absolute}")
    rows = []
    for i in range(3):
        wide = source_values("f32", i, name)
        narrow = _rows("f16", 3, name)[i]
        rows.append(narrow if pick.op_sel_hi >> i & 1 else wide)
        rng.shuffle(rows[-1])
    before = source_values("b32", 0, name)
    texts = [f"|v{1 + i}|" if absolute >> i & 1 else f"v{1 + i}" for i in range(3)]
    texts = [f"-{t}" if pick.neg_lo >> i & 1 else t for i, t in enumerate(texts)]
    shown = dataclasses.replace(pick, neg_lo=0)
    body = f"{name} v20, {', '.join(texts)} {shown.text(3)}"
    results = [
        formats.fma(F32, *(_mix_source(rows[i][lane], i, pick, absolute) for i in range(3)))
        for lane in range(LANES)
    ]
    vgprs = {1 + i: as_lanes(row) for i, row in enumerate(rows)} | {20: as_lanes(before)}
    if name == "v_fma_mix_f32":
        return Case(body, Snippet(body, vgprs=vgprs, read_vgprs=(20,)), vgprs=(Expect(20, "f32", results),))
    halves = [formats.convert(F32, F16, r) for r in results]
    kept = [b & 0xFFFF if name.endswith("hi_f16") else b >> 16 for b in before]
    if name.endswith("hi_f16"):
        body += "\nv_alignbit_b32 v20, v20, v20, 16"  # swap the halves, to compare the new one as f16
    snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
    return Case(body, snippet, vgprs=(Expect(20, "f16", halves, rest=kept),))


def mix_cases(name: str) -> list[Case]:
    rng = random.Random(name)
    picks = [Pick(op_sel_hi=0), Pick(op_sel_hi=7), Pick(op_sel=7, op_sel_hi=7)]
    picks += [Pick(rng.getrandbits(3), rng.getrandbits(3), neg_lo=rng.getrandbits(3)) for _ in range(5)]
    return [_mix_case(name, pick, rng.getrandbits(3) if i > 2 else 0) for i, pick in enumerate(picks)]


DOT2_BITS = 22  # relative to the sum of magnitudes: the hardware's internal rounding is not documented


def _dot2_f32_case(pick: Pick) -> Case:
    rng = np.random.default_rng(7)
    pairs = [rng.standard_normal((LANES, 2)).astype(np.float16) for _ in range(2)]
    add = rng.standard_normal(LANES).astype(np.float32)
    rows = [p.view(np.uint32).reshape(LANES) for p in pairs]
    body = f"v_dot2_f32_f16 v20, v1, v2, v3 {dataclasses.replace(pick).text(3)}"
    expected, tolerance = [], 0.0
    for lane in range(LANES):
        terms = [Fraction(float(add[lane])) * (-1 if pick.neg_lo >> 2 & 1 else 1)]
        for high in (False, True):
            chosen, negated = (pick.op_sel_hi, pick.neg_hi) if high else (pick.op_sel, pick.neg_lo)
            factors = [
                Fraction(float(pairs[i][lane][chosen >> i & 1])) * (-1 if negated >> i & 1 else 1)
                for i in range(2)
            ]
            terms.append(factors[0] * factors[1])
        expected.append(float(sum(terms)))
        tolerance = max(tolerance, float(sum(map(abs, terms))) * 2.0**-DOT2_BITS)
    vgprs: dict[int, Lanes] = {1: rows[0], 2: rows[1], 3: add.view(np.uint32)}
    snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
    return Case(body, snippet, vgprs=(Expect(20, "f32", expected, absolute=tolerance),))


def half(*values: float) -> int:
    """Two f16 in one word."""
    return int(np.array(values, np.float16).view(np.uint32)[0])


def single(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _dot2_special_case() -> Case:
    """Values for which every rounding order gives the same: zeros, infinities, NaN, exact integers."""
    inf, nan = float("inf"), float("nan")
    rows = [
        (half(1, 2), half(3, 4), single(5), single(16)),
        (half(2048, -2048), half(2048, 2048), single(0.5), single(0.5)),
        (half(65504, 65504), half(65504, 65504), single(0), single(2 * 65504.0**2)),
        (half(inf, 1), half(1, 1), single(0), single(inf)),
        (half(inf, 1), half(0, 1), single(0), single(nan)),
        (half(inf, -inf), half(1, 1), single(0), single(nan)),
        (half(1, 1), half(1, 1), single(-inf), single(-inf)),
        (half(nan, 0), half(0, 0), single(0), single(nan)),
        (half(0, 0), half(0, 0), single(7.25), single(7.25)),
        (half(2.0**-24, 0), half(1, 0), single(0), single(2.0**-24)),  # f16 denormals are kept
    ]
    lanes = [rows[i % len(rows)] for i in range(LANES)]
    vgprs = {1 + i: as_lanes([row[i] for row in lanes]) for i in range(3)}
    body = "v_dot2_f32_f16 v20, v1, v2, v3"
    snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
    return Case(body, snippet, vgprs=(Expect(20, "f32", [row[3] for row in lanes]),))


def integer_dot(bits: int, sign: bool) -> Callable[[int, int, int], int]:
    def meaning(a: int, b: int, c: int) -> int:
        fields = [(a >> at & ((1 << bits) - 1), b >> at & ((1 << bits) - 1)) for at in range(0, 32, bits)]
        if sign:
            return sum(signed(x, bits) * signed(y, bits) for x, y in fields) + signed(c, 32)
        return sum(x * y for x, y in fields) + c

    return meaning


INTEGER_DOTS = {
    "v_dot2_i32_i16": (16, True),
    "v_dot2_u32_u16": (16, False),
    "v_dot4_i32_i8": (8, True),
    "v_dot4_u32_u8": (8, False),
    "v_dot8_i32_i4": (4, True),
    "v_dot8_u32_u4": (4, False),
}


def integer_dot_cases(name: str) -> list[Case]:
    bits, sign = INTEGER_DOTS[name]
    meaning = integer_dot(bits, sign)
    rows = [source_values("b32", i, name) for i in range(3)]
    vgprs = {1 + i: as_lanes(row) for i, row in enumerate(rows)}
    exact = [meaning(*sources) for sources in zip(*rows, strict=True)]
    limits = (-(1 << 31), (1 << 31) - 1) if sign else (0, (1 << 32) - 1)
    cases = []
    for clamp, lanes in (("", exact), (" clamp", [saturate(v, limits) for v in exact])):
        body = f"{name} v20, v1, v2, v3{clamp}"
        snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
        cases.append(Case(body, snippet, vgprs=(Expect(20, "b32", lanes),)))
    return cases


def dot2_f32_cases() -> list[Case]:
    picks = [Pick(), Pick(op_sel=1, op_sel_hi=5), Pick(op_sel=3, op_sel_hi=4), Pick(neg_lo=5, neg_hi=6)]
    return [*map(_dot2_f32_case, picks), _dot2_special_case()]


MIXES = ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
BATCH = Batch(
    {op.name: partial(packed_cases, op) for op in PACKED}
    | {name: partial(mix_cases, name) for name in MIXES}
    | {name: partial(integer_dot_cases, name) for name in INTEGER_DOTS}
    | {"v_dot2_f32_f16": dot2_f32_cases}
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_packed(group: str) -> None:
    BATCH.check(group)
