"""References of the two-source vector opcodes (without carry and compare)."""

from collections.abc import Callable
from fractions import Fraction

from tests.sim.exec import formats
from tests.sim.exec.formats import F16, F32, Format
from tests.sim.exec.ops.op import FORMATS, Op, signed


def low24(bits: int) -> int:
    return bits & 0xFFFFFF


def mad_rounding_twice(fmt: Format, a: int, b: int, c: int) -> int:
    """Multiply, round, add, round."""
    return formats.add(fmt, formats.multiply(fmt, a, b), c)


def mad_f32(a: int, b: int, c: int) -> int:
    """v_mad_f32 and v_mac_f32 know no denormals, whatever MODE says."""
    a, b, c = F32.flush(a), F32.flush(b), F32.flush(c)
    product = F32.flush(formats.multiply(F32, a, b))
    return F32.flush(formats.add(F32, product, c))


def multiply_legacy(a: int, b: int) -> int:
    """Zero times anything is +0."""
    if F32.is_zero(a) or F32.is_zero(b):
        return 0
    return formats.multiply(F32, a, b)


def ldexp(fmt: Format, a: int, exponent: int) -> int:
    if fmt.is_nan(a) or fmt.is_infinite(a) or fmt.is_zero(a):
        return fmt.nan if fmt.is_nan(a) else a
    bounded = max(min(exponent, 5000), -5000)  # beyond any format's range already
    return fmt.round(fmt.value(a) * Fraction(2) ** bounded, zero_sign=fmt.is_negative(a))


def _float_ops(kind: str) -> list[Op]:
    fmt = FORMATS[kind]
    pair = (kind, kind)
    return [
        Op(f"v_add_{kind}", kind, pair, lambda a, b: formats.add(fmt, a, b)),
        Op(f"v_sub_{kind}", kind, pair, lambda a, b: formats.add(fmt, a, formats.negate(fmt, b))),
        Op(f"v_subrev_{kind}", kind, pair, lambda a, b: formats.add(fmt, b, formats.negate(fmt, a))),
        Op(f"v_mul_{kind}", kind, pair, lambda a, b: formats.multiply(fmt, a, b)),
        Op(f"v_max_{kind}", kind, pair, lambda a, b: formats.maximum(fmt, a, b)),
        Op(f"v_min_{kind}", kind, pair, lambda a, b: formats.minimum(fmt, a, b)),
    ]


def _ints(name: str, kind: str, meaning: Callable[[int, int], int], **flags: bool) -> Op:
    return Op(f"v_{name}_{kind}", kind, (kind, kind), meaning, **flags)


def _extremes() -> list[Op]:
    ops = []
    for kind in ("i16", "u16", "i32", "u32"):
        ops += [_ints("max", kind, max), _ints("min", kind, min)]
    return ops


def _shifts() -> list[Op]:
    return [
        Op("v_lshlrev_b32", "b32", ("u32", "u32"), lambda a, b: b << (a & 31)),
        Op("v_lshrrev_b32", "b32", ("u32", "u32"), lambda a, b: b >> (a & 31)),
        Op("v_ashrrev_i32", "i32", ("u32", "i32"), lambda a, b: b >> (a & 31)),
        Op("v_lshlrev_b16", "b16", ("u16", "u16"), lambda a, b: b << (a & 15)),
        Op("v_lshrrev_b16", "b16", ("u16", "u16"), lambda a, b: b >> (a & 15)),
        Op("v_ashrrev_i16", "i16", ("u16", "i16"), lambda a, b: b >> (a & 15)),
    ]


VOP2 = [
    *_float_ops("f32"),
    *_float_ops("f16"),
    Op("v_mul_legacy_f32", "f32", ("f32", "f32"), multiply_legacy),
    Op("v_mac_f32", "f32", ("f32", "f32", "f32"), mad_f32, reads_dst=True, sdwa=False),
    Op(
        "v_mac_f16",
        "f16",
        ("f16", "f16", "f16"),
        lambda a, b, c: mad_rounding_twice(F16, a, b, c),
        reads_dst=True,
        sdwa=False,
        keeps_high_half=True,
    ),
    Op(
        "v_fmac_f32",
        "f32",
        ("f32", "f32", "f32"),
        lambda a, b, c: formats.fma(F32, a, b, c),
        reads_dst=True,
        sdwa=False,
    ),
    Op("v_ldexp_f16", "f16", ("f16", "i16"), lambda a, b: ldexp(F16, a, b)),
    Op("v_mul_i32_i24", "i32", ("u32", "u32"), lambda a, b: signed(a, 24) * signed(b, 24)),
    Op("v_mul_hi_i32_i24", "i32", ("u32", "u32"), lambda a, b: signed(a, 24) * signed(b, 24) >> 32),
    Op("v_mul_u32_u24", "u32", ("u32", "u32"), lambda a, b: low24(a) * low24(b)),
    Op("v_mul_hi_u32_u24", "u32", ("u32", "u32"), lambda a, b: low24(a) * low24(b) >> 32),
    _ints("and", "b32", lambda a, b: a & b),
    _ints("or", "b32", lambda a, b: a | b),
    _ints("xor", "b32", lambda a, b: a ^ b),
    _ints("xnor", "b32", lambda a, b: ~(a ^ b)),
    _ints("add", "u32", lambda a, b: a + b, clamp=True),
    _ints("sub", "u32", lambda a, b: a - b, clamp=True),
    _ints("subrev", "u32", lambda a, b: b - a, clamp=True),
    _ints("add", "u16", lambda a, b: a + b, clamp=True),
    _ints("sub", "u16", lambda a, b: a - b, clamp=True),
    _ints("subrev", "u16", lambda a, b: b - a, clamp=True),
    _ints("mul_lo", "u16", lambda a, b: a * b),
    *_extremes(),
    *_shifts(),
]
