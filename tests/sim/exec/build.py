"""Turns the reference of an opcode into cases: one per encoding and modifier.

The order of steps is the hardware's: pick the source (lane crossing, then part of the register),
abs, neg, the operation, output multiplier, clamp, then the part of the destination.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tests.kit.asm import ALL_LANES, LANES, Lanes, Snippet, untouched
from tests.sim.exec.case import Case, Expect, Value
from tests.sim.exec.ops.op import FORMATS, Op, decode, is_float, signed, width
from tests.sim.exec.ops.values import registers, source_values

DST = 20
SRC = (1, 3, 5)
SGPR = 30

SELECTS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8)}
SELECTS |= {"WORD_0": (0, 16), "WORD_1": (16, 16), "DWORD": (0, 32)}


@dataclass(frozen=True)
class Constant:
    """A source that is no VGPR: its text, its bits, and an SGPR's value if it is one."""

    text: str
    bits: int
    sgpr: bool = False


@dataclass(frozen=True)
class Sdwa:
    dst: str = "DWORD"
    unused: str = "UNUSED_PAD"
    src: tuple[str, ...] = ("DWORD", "DWORD")
    sext: tuple[bool, ...] = (False, False)


@dataclass(frozen=True)
class Dpp:
    """`lanes[i]` is the source lane of lane i, None where there is none."""

    control: str
    lanes: tuple[int | None, ...]
    bound_ctrl: bool = False
    row_mask: int = 15
    bank_mask: int = 15


@dataclass(frozen=True)
class Variant:
    """How one case departs from the plain encoding."""

    suffix: str
    constants: tuple[Constant | None, ...] = (None, None, None)
    neg: int = 0
    abs: int = 0
    clamp: bool = False
    omod: int = 0  # 0 none, 1 mul:2, 2 mul:4, 3 div:2
    op_sel: int = 0
    exec: int = ALL_LANES
    sdwa: Sdwa | None = None
    dpp: Dpp | None = None
    ieee: bool = True
    dx10_clamp: bool = True
    denormals: bool = True
    note: str = ""


def register_name(first: int, bits: int) -> str:
    return f"v[{first}:{first + 1}]" if bits == 64 else f"v{first}"


def _source_text(op: Op, variant: Variant, position: int) -> str:
    constant = variant.constants[position]
    text = constant.text if constant else register_name(SRC[position], width(op.src[position]))
    if variant.sdwa and variant.sdwa.sext[position]:
        text = f"sext({text})"
    if variant.abs >> position & 1:
        text = f"|{text}|"
    return f"-{text}" if variant.neg >> position & 1 else text


def _modifier_text(op: Op, variant: Variant, arity: int) -> str:
    parts = []
    if variant.op_sel:
        bits = [variant.op_sel >> i & 1 for i in range(arity)] + [variant.op_sel >> 3]
        parts.append(f"op_sel:[{','.join(map(str, bits))}]")
    if variant.clamp:
        parts.append("clamp")
    if variant.omod:
        parts.append(("mul:2", "mul:4", "div:2")[variant.omod - 1])
    if variant.sdwa:
        parts += [f"dst_sel:{variant.sdwa.dst}", f"dst_unused:{variant.sdwa.unused}"]
        parts += [f"src{i}_sel:{variant.sdwa.src[i]}" for i in range(arity)]
    if variant.dpp:
        dpp = variant.dpp
        parts.append(f"{dpp.control} row_mask:{dpp.row_mask:#x} bank_mask:{dpp.bank_mask:#x}")
        parts += ["bound_ctrl:0"] if dpp.bound_ctrl else []
    return " ".join(parts)


def instruction(op: Op, variant: Variant) -> str:
    arity = len(op.src) - int(op.reads_dst)
    sources = [_source_text(op, variant, i) for i in range(arity)]
    operands = ", ".join([register_name(DST, width(op.dst)), *sources])
    return f"{op.name}{variant.suffix} {operands} {_modifier_text(op, variant, arity)}".rstrip()


def dpp_writes(dpp: Dpp, exec_mask: int, lane: int) -> bool:
    """Whether the lane's result is stored."""
    row, bank = lane // 16, lane % 16 // 4
    if not dpp.row_mask >> row & 1 or not dpp.bank_mask >> bank & 1:
        return False
    return dpp.bound_ctrl or dpp_source(dpp, exec_mask, lane) is not None


def dpp_source(dpp: Dpp, exec_mask: int, lane: int) -> int | None:
    source = dpp.lanes[lane]
    return source if source is not None and exec_mask >> source & 1 else None


def _fetch(op: Op, variant: Variant, values: list[list[int]], position: int, lane: int) -> int:
    """One lane's source, up to and including abs and neg, as the operation sees it."""
    kind = op.src[position]
    constant = variant.constants[position]
    if constant:
        bits = constant.bits
    elif variant.dpp and position == 0:
        source = dpp_source(variant.dpp, variant.exec, lane)
        bits = 0 if source is None else values[0][source]
    else:
        bits = values[position][lane]
    if variant.sdwa and position < 2 and not (op.reads_dst and position == len(op.src) - 1):
        start, size = SELECTS[variant.sdwa.src[position]]
        bits = bits >> start & ((1 << size) - 1)
        bits = signed(bits, size) & 0xFFFFFFFF if variant.sdwa.sext[position] else bits
    if variant.op_sel >> position & 1 and width(kind) == 16:
        bits >>= 16
    if is_float(kind):
        fmt = FORMATS[kind]
        bits &= (1 << fmt.width) - 1
        bits &= ~fmt.sign_bit if variant.abs >> position & 1 else -1
        bits ^= fmt.sign_bit if variant.neg >> position & 1 else 0
        bits = bits if variant.denormals else fmt.flush(bits)
    return decode(kind, bits)


def _clamped_integer(kind: str, value: int) -> int:
    n = width(kind)
    low, high = (-(1 << n - 1), (1 << n - 1) - 1) if kind[0] == "i" else (0, (1 << n) - 1)
    return min(max(value, low), high)


def finish_float(kind: str, variant: Variant, bits: int) -> int:
    """Output multiplier, flush and clamp of a float result."""
    fmt = FORMATS[kind]
    if fmt.is_nan(bits):
        return 0 if variant.clamp and variant.dx10_clamp else bits
    if variant.omod and not fmt.is_infinite(bits):
        factor = (Fraction(2), Fraction(4), Fraction(1, 2))[variant.omod - 1]
        bits = fmt.round(fmt.value(bits) * factor)
    if not variant.denormals:
        bits = fmt.flush(bits)
    if variant.clamp:
        one = fmt.round(Fraction(1))
        bits = 0 if fmt.is_negative(bits) else min(bits, one)
    return bits


def _result(op: Op, variant: Variant, sources: list[int]) -> Value:
    result = op.meaning(*sources)
    if isinstance(result, float):
        if not variant.clamp:
            return result
        return (0.0 if variant.dx10_clamp else result) if math.isnan(result) else min(max(result, 0.0), 1.0)
    if is_float(op.dst):
        return finish_float(op.dst, variant, result)
    return _clamped_integer(op.dst, result) if variant.clamp else result


def _merge(op: Op, variant: Variant, result: int, before: int) -> tuple[int, int]:
    """The destination register as (bits of the result's kind, upper half)."""
    if variant.sdwa:
        start, size = SELECTS[variant.sdwa.dst]
        mask = ((1 << size) - 1) << start
        part = (result & ((1 << min(width(op.dst), 32)) - 1)) << start & mask
        if variant.sdwa.unused == "UNUSED_PRESERVE":
            word = before & ~mask & 0xFFFFFFFF | part
        elif variant.sdwa.unused == "UNUSED_SEXT":
            word = signed(part >> start, size) << start & 0xFFFFFFFF
        else:
            word = part
        return word, word >> 16
    if width(op.dst) == 16:
        result &= 0xFFFF
        if variant.op_sel >> 3:
            return before & 0xFFFF, result
        return result, before >> 16 if op.keeps_high_half else 0
    return result, 0


def _selects_part(variant: Variant) -> bool:
    return variant.sdwa is not None and variant.sdwa.dst != "DWORD"


def _is_vague(op: Op, variant: Variant, value: Value) -> bool:
    """A part of a NaN, or of a clamped zero: neither the payload nor the sign is defined."""
    if not (_selects_part(variant) or variant.op_sel >> 3) or not is_float(op.dst):
        return False
    fmt = FORMATS[op.dst]
    return isinstance(value, float) or fmt.is_nan(value) or (variant.clamp and fmt.is_zero(value))


def build_case(op: Op, variant: Variant, seed: str = "") -> Case:
    """The case of one opcode and one variant, with this repository's standard sources."""
    key = op.name + seed
    vgprs: dict[int, Lanes] = {}
    raw: list[list[int]] = []
    for i, kind in enumerate(op.src):
        rows = registers(kind, source_values(kind, i, key), f"{key}{i}")
        raw.append([sum(int(row[lane]) << 32 * n for n, row in enumerate(rows)) for lane in range(LANES)])
        first = DST if op.reads_dst and i == len(op.src) - 1 else SRC[i]
        vgprs |= {first + n: row for n, row in enumerate(rows)}
    out = (DST, DST + 1) if width(op.dst) == 64 else (DST,)
    before = [vgprs.get(r, untouched(r)) for r in out]

    lanes: list[Value | None] = []
    upper: list[int | None] = []
    for lane in range(LANES):
        old = sum(int(row[lane]) << 32 * n for n, row in enumerate(before))
        active = variant.exec >> lane & 1
        if active and variant.dpp:
            active = dpp_writes(variant.dpp, variant.exec, lane)
        value: Value = old
        high = old >> 16
        if active:
            value = _result(op, variant, [_fetch(op, variant, raw, i, lane) for i in range(len(op.src))])
            high = 0
            if _is_vague(op, variant, value):
                lanes.append(None)
                upper.append(None)
                continue
            if not isinstance(value, float):
                value, high = _merge(op, variant, value, old)
        lanes.append(value)
        upper.append(high & 0xFFFF)
    return _assemble_case(op, variant, vgprs, out, lanes, upper)


def _assemble_case(
    op: Op,
    variant: Variant,
    vgprs: dict[int, Lanes],
    out: tuple[int, ...],
    lanes: list[Value | None],
    upper: list[int | None],
) -> Case:
    text = instruction(op, variant)
    scalars = {SGPR + 2 * i: c for i, c in enumerate(variant.constants) if c and c.sgpr}
    sgprs = {r + n: c.bits >> 32 * n & 0xFFFFFFFF for r, c in scalars.items() for n in range(2)}
    snippet = Snippet(
        text,
        vgprs=vgprs,
        sgprs=sgprs,
        exec=variant.exec,
        read_vgprs=out,
        ieee=variant.ieee,
        dx10_clamp=variant.dx10_clamp,
        float_denorm_mode_32=3 if variant.denormals else 0,
        float_denorm_mode_16_64=3 if variant.denormals else 0,
    )
    kind = "b32" if _selects_part(variant) else op.dst
    expect = Expect(
        DST,
        kind,
        lanes,
        rest=upper if width(kind) == 16 else (),
        ulp=op.ulp,
        zero_sign_free=variant.clamp or variant.omod != 0,
    )
    return Case(f"{text} {variant.note}".rstrip(), snippet, vgprs=(expect,))


def partial_exec(seed: str) -> int:
    return random.Random(f"exec {seed}").getrandbits(LANES)


def as_lanes(values: list[int]) -> Lanes:
    return np.array([v & 0xFFFFFFFF for v in values], np.uint32)
