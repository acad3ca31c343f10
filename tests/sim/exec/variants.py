"""Which variants each opcode is tested with."""

import dataclasses
import random
from collections.abc import Iterator
from fractions import Fraction

from tests.kit.asm import LANES
from tests.sim.exec.build import SELECTS, Constant, Dpp, Sdwa, Variant, partial_exec
from tests.sim.exec.formats import Format
from tests.sim.exec.ops.op import FORMATS, Op, is_float, width

INLINE_FLOATS = {"0.5": 0.5, "-0.5": -0.5, "1.0": 1.0, "-1.0": -1.0, "2.0": 2.0, "-2.0": -2.0, "4.0": 4.0}
INLINE_FLOATS |= {"-4.0": -4.0}
INVERSE_TWO_PI_TEXT = {16: "0.15915494", 32: "0.15915494", 64: "0.15915494309189532"}
INVERSE_TWO_PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}
INLINE_INTEGERS = (0, 1, 2, 31, 63, 64, -1, -2, -16)


def inline_float(fmt: Format, text: str) -> int:
    if text == INVERSE_TWO_PI_TEXT[fmt.width]:
        return INVERSE_TWO_PI[fmt.width]
    return fmt.round(Fraction(INLINE_FLOATS[text]))


def inline_constants(kind: str) -> list[Constant]:
    """Every kind of inline constant that a source of type `kind` can take."""
    n = width(kind)
    out = [Constant(str(i), i & ((1 << n) - 1)) for i in INLINE_INTEGERS]
    if is_float(kind):
        texts = [*INLINE_FLOATS, INVERSE_TWO_PI_TEXT[n]]
        out += [Constant(t, inline_float(FORMATS[kind], t)) for t in texts]
    elif n == 32:
        out += [Constant(t, inline_float(FORMATS["f32"], t)) for t in INLINE_FLOATS]
    return out


def _positions(op: Op) -> range:
    return range(len(op.src) - int(op.reads_dst))


def _with(position: int, constant: Constant) -> tuple[Constant | None, ...]:
    return tuple(constant if i == position else None for i in range(3))


def _constant_variants(op: Op, rng: random.Random) -> Iterator[Variant]:
    for position in _positions(op):
        kind = op.src[position]
        constant = rng.choice(inline_constants(kind))
        yield Variant("_e64", constants=_with(position, constant), note="inline constant")
        text = "s[30:31]" if width(kind) == 64 else f"s{30 + 2 * position}"
        if width(kind) == 64:
            text = f"s[{30 + 2 * position}:{31 + 2 * position}]"
        value = rng.getrandbits(width(kind))
        yield Variant("_e64", constants=_with(position, Constant(text, value, sgpr=True)), note="sgpr")
    if op.e32:
        bits = rng.getrandbits(32) | 0x01000000
        kind = op.src[0]
        if width(kind) == 64:
            literal = Constant(f"{bits:#x}", bits << 32)
        elif width(kind) == 16:
            literal = Constant(f"{bits & 0xFFF | 0x1000:#x}", bits & 0xFFF | 0x1000)
        else:
            literal = Constant(f"{bits:#x}", bits)
        yield Variant("_e32", constants=_with(0, literal), note="literal")
        yield Variant("_e32", constants=_with(0, rng.choice(inline_constants(kind))), note="inline")


def _float_variants(op: Op, rng: random.Random) -> Iterator[Variant]:
    floats = sum(1 << i for i in _positions(op) if is_float(op.src[i]))
    if floats and op.modifiers:
        yield Variant("_e64", neg=floats)
        yield Variant("_e64", abs=floats)
        yield Variant("_e64", neg=1 & floats or floats, abs=floats)
    if is_float(op.dst):
        yield Variant("_e64", clamp=True)
        yield Variant("_e64", clamp=True, dx10_clamp=False, note="no dx10_clamp")
        if floats:
            yield Variant("_e64", clamp=True, neg=rng.choice([floats, 0]), exec=partial_exec(op.name))


def _sdwa_variants(op: Op, rng: random.Random) -> Iterator[Variant]:
    arity = len(_positions(op))
    fitting = [
        ("WORD_0", "WORD_1", "DWORD") if k == "f16" else ("DWORD",) if k == "f32" else tuple(SELECTS)
        for k in op.src[:arity]
    ]
    destinations = ["DWORD"] if op.ulp else list(SELECTS)
    for _ in range(3):
        src = tuple(rng.choice(f) for f in fitting)
        sext = tuple(not is_float(op.src[i]) and rng.random() < 0.5 for i in range(arity))
        unused = rng.choice(["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"])
        dst = rng.choice(destinations)
        neg = rng.getrandbits(2) & sum(1 << i for i in range(arity) if is_float(op.src[i]))
        yield Variant("_sdwa", sdwa=Sdwa(dst, unused, src, sext), neg=neg, exec=partial_exec(op.name + dst))


def row_shift(amount: int) -> tuple[int | None, ...]:
    """Lane i reads lane i - amount of its row of 16."""
    return tuple(i - amount if 0 <= i % 16 - amount < 16 else None for i in range(LANES))


def _dpp_variants(op: Op, rng: random.Random) -> Iterator[Variant]:
    quad = [rng.randrange(4) for _ in range(4)]
    quads = tuple(i & ~3 | quad[i & 3] for i in range(LANES))
    amount = rng.randint(1, 15)
    text = ",".join(map(str, quad))
    yield Variant("_dpp", dpp=Dpp(f"quad_perm:[{text}]", quads, bank_mask=rng.randint(1, 15)))
    yield Variant("_dpp", dpp=Dpp(f"row_shr:{amount}", row_shift(amount), bound_ctrl=True))
    execution = partial_exec(op.name + "dpp")
    yield Variant("_dpp", dpp=Dpp(f"row_shr:{amount}", row_shift(amount), row_mask=11), exec=execution)


def variants_of(op: Op) -> list[Variant]:
    """Plain, partial and empty EXEC, constants, modifiers, and the encodings that `op` has."""
    rng = random.Random(op.name)
    short = "_e32" if op.e32 else "_e64" if op.e32 else ""
    out = [Variant(short), Variant(short, exec=partial_exec(op.name)), Variant(short, exec=0)]
    if op.e32:
        out.append(Variant("_e64"))
    long = [*_constant_variants(op, rng), *_float_variants(op, rng)]
    if op.clamp:
        long.append(Variant("_e64", clamp=True))
    if op.op_sel:
        arity = len(op.src)
        picks = [
            rng.getrandbits(arity) | (rng.getrandbits(1) << 3 if width(op.dst) == 16 else 0) for _ in range(2)
        ]
        picks += [8] if width(op.dst) == 16 else [1]
        long += [Variant("_e64", op_sel=p) for p in picks if p]
    out += [v if op.e32 or v.suffix != "_e64" else _without_suffix(v) for v in long]
    if op.sdwa:
        out += _sdwa_variants(op, rng)
    if op.dpp:
        out += _dpp_variants(op, rng)
    return out


def _without_suffix(variant: Variant) -> Variant:
    return dataclasses.replace(variant, suffix="")
