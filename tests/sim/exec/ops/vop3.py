"""References of the opcodes that only the VOP3 encoding has (without carries, lanes and division)."""

from collections.abc import Callable
from fractions import Fraction

from tests.sim.exec import formats
from tests.sim.exec.formats import F16, F32, F64, Format
from tests.sim.exec.ops.op import FORMATS, Op, signed
from tests.sim.exec.ops.vop1 import I16, U16
from tests.sim.exec.ops.vop2 import ldexp, low24, mad_f32, mad_rounding_twice

Meaning = Callable[..., int]


def _op(name: str, dst: str, src: tuple[str, ...], meaning: Meaning, **flags: bool) -> Op:
    return Op(name, dst, src, meaning, e32=False, sdwa=False, dpp=False, **flags)


def _u32(name: str, arity: int, meaning: Meaning) -> Op:
    return _op(name, "u32", ("u32",) * arity, meaning)


def bytes_of(bits: int, count: int = 4) -> list[int]:
    return [bits >> 8 * i & 255 for i in range(count)]


def _bfe_u(value: int, offset: int, size: int) -> int:
    return value >> (offset & 31) & ((1 << (size & 31)) - 1)


def _bfe_i(value: int, offset: int, size: int) -> int:
    size &= 31
    if size == 0:
        return 0
    if (offset & 31) + size > 32:  # the field ends at the sign bit
        return signed(value, 32) >> (offset & 31)
    return signed(value >> (offset & 31), size)


def permute_bytes(high: int, low: int, selectors: int) -> int:
    """Byte n of the result is picked by byte n of `selectors` from high:low."""
    source = bytes_of(high << 32 | low, 8)
    out = 0
    for n, selector in enumerate(bytes_of(selectors)):
        if selector < 8:
            byte = source[selector]
        elif selector < 12:  # sign of the 16-bit field selector - 8
            byte = 255 if source[2 * (selector - 8) + 1] & 0x80 else 0
        else:
            byte = 0 if selector == 12 else 255
        out |= byte << 8 * n
    return out


def sad_u8(a: int, b: int) -> int:
    return sum(abs(x - y) for x, y in zip(bytes_of(a), bytes_of(b), strict=True))


def _byte_into(a: int, position: int, c: int) -> int:
    byte = formats.to_integer(F32, a, 0, 255, round)
    shift = 8 * (position & 3)
    return c & ~(255 << shift) | byte << shift


def median(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


def float_median(fmt: Format) -> Meaning:
    def meaning(a: int, b: int, c: int) -> int:
        if any(map(fmt.is_nan, (a, b, c))):
            return formats.minimum(fmt, formats.minimum(fmt, a, b), c)
        key = formats.order_key(fmt)
        # -0 orders below +0, as the opcode's max and min do
        return sorted((a, b, c), key=lambda bits: (key(bits), not fmt.is_negative(bits)))[1]

    return meaning


def _three_float(kind: str) -> list[Op]:
    fmt = FORMATS[kind]
    half = kind == "f16"
    flags = {"keeps_high_half": half, "op_sel": half}
    triple = (kind,) * 3

    def over(pick: Callable[[Format, int, int], int]) -> Meaning:
        return lambda a, b, c: pick(fmt, pick(fmt, a, b), c)

    return [
        _op(f"v_min3_{kind}", kind, triple, over(formats.minimum), **flags),
        _op(f"v_max3_{kind}", kind, triple, over(formats.maximum), **flags),
        _op(f"v_med3_{kind}", kind, triple, float_median(fmt), **flags),
    ]


def _three_integer() -> list[Op]:
    ops = []
    for kind in ("i32", "u32", "i16", "u16"):
        half = kind[1:] == "16"
        flags = {"keeps_high_half": half, "op_sel": half}
        for name, meaning in (("min3", min), ("max3", max), ("med3", median)):
            ops.append(_op(f"v_{name}_{kind}", kind, (kind,) * 3, meaning, **flags))
    return ops


def saturate(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])


def _pack(low: int, high: int) -> int:
    return low & 0xFFFF | (high & 0xFFFF) << 16


def _norm(fmt: Format, low: int, scale: int) -> Callable[[int], int]:
    def meaning(a: int) -> int:
        if fmt.is_nan(a):
            return 0
        infinite = fmt.is_infinite(a)
        exact = Fraction(-1 if fmt.is_negative(a) else 1) if infinite else fmt.value(a)
        return round(min(max(exact, Fraction(low)), Fraction(1)) * scale)

    return meaning


def _both(convert: Callable[[int], int]) -> Meaning:
    return lambda a, b: _pack(convert(a), convert(b))


def _round_to_zero(a: int) -> int:
    return formats.convert(F32, F16, a, toward_zero=True)


def _packing() -> list[Op]:
    ops = [
        _op("v_pack_b32_f16", "b32", ("f16", "f16"), _pack, op_sel=True),
        _op(
            "v_cvt_pkrtz_f16_f32",
            "h32",
            ("f32", "f32"),
            _both(_round_to_zero),
        ),
        _op(
            "v_cvt_pk_u16_u32", "b32", ("u32", "u32"), lambda a, b: _pack(saturate(a, U16), saturate(b, U16))
        ),
        _op(
            "v_cvt_pk_i16_i32", "b32", ("i32", "i32"), lambda a, b: _pack(saturate(a, I16), saturate(b, I16))
        ),
        _op("v_cvt_pk_u8_f32", "b32", ("f32", "u32", "b32"), _byte_into),
    ]
    for name, low, scale in (("i16", -1, 32767), ("u16", 0, 65535)):
        ops.append(_op(f"v_cvt_pknorm_{name}_f32", "b32", ("f32", "f32"), _both(_norm(F32, low, scale))))
    return ops


BIT_FIELDS = [
    _u32("v_bfe_u32", 3, _bfe_u),
    _op("v_bfe_i32", "i32", ("u32", "u32", "u32"), _bfe_i),
    _u32("v_bfi_b32", 3, lambda mask, a, b: mask & a | ~mask & b),
    _u32("v_bfm_b32", 2, lambda size, offset: ((1 << (size & 31)) - 1) << (offset & 31)),
    _u32("v_alignbit_b32", 3, lambda high, low, n: (high << 32 | low) >> (n & 31)),
    _u32("v_alignbyte_b32", 3, lambda high, low, n: (high << 32 | low) >> 8 * (n & 3)),
    _u32("v_perm_b32", 3, permute_bytes),
    _u32("v_bcnt_u32_b32", 2, lambda a, b: a.bit_count() + b),
    _u32("v_and_or_b32", 3, lambda a, b, c: a & b | c),
    _u32("v_or3_b32", 3, lambda a, b, c: a | b | c),
    _u32("v_lshl_or_b32", 3, lambda a, n, c: a << (n & 31) | c),
    _u32("v_lshl_add_u32", 3, lambda a, n, c: (a << (n & 31)) + c),
    _u32("v_add_lshl_u32", 3, lambda a, b, n: (a + b) << (n & 31)),
    _u32("v_add3_u32", 3, lambda a, b, c: a + b + c),
    _u32("v_xad_u32", 3, lambda a, b, c: (a ^ b) + c),
]

BYTES = [
    _u32("v_sad_u8", 3, lambda a, b, c: sad_u8(a, b) + c),
    _u32("v_sad_u32", 3, lambda a, b, c: abs(a - b) + c),
]

MULTIPLIES = [
    _u32("v_mul_lo_u32", 2, lambda a, b: a * b),
    _u32("v_mul_hi_u32", 2, lambda a, b: a * b >> 32),
    _op("v_mul_hi_i32", "i32", ("i32", "i32"), lambda a, b: a * b >> 32),
    _u32("v_mad_u32_u24", 3, lambda a, b, c: low24(a) * low24(b) + c),
    _op("v_mad_i32_i24", "i32", ("u32", "u32", "i32"), lambda a, b, c: signed(a, 24) * signed(b, 24) + c),
    _op("v_mad_u32_u16", "u32", ("u16", "u16", "u32"), lambda a, b, c: a * b + c, op_sel=True),
    _op("v_mad_i32_i16", "i32", ("i16", "i16", "i32"), lambda a, b, c: a * b + c, op_sel=True),
    _op("v_mad_u16", "u16", ("u16",) * 3, lambda a, b, c: a * b + c, keeps_high_half=True, op_sel=True),
    _op("v_mad_i16", "i16", ("i16",) * 3, lambda a, b, c: a * b + c, keeps_high_half=True, op_sel=True),
    _op("v_mad_legacy_u16", "u16", ("u16",) * 3, lambda a, b, c: a * b + c),
    _op("v_mad_legacy_i16", "i16", ("i16",) * 3, lambda a, b, c: a * b + c),
    _op("v_add_i32", "i32", ("i32", "i32"), lambda a, b: a + b, clamp=True),
    _op("v_sub_i32", "i32", ("i32", "i32"), lambda a, b: a - b, clamp=True),
    _op(
        "v_add_i16", "i16", ("i16", "i16"), lambda a, b: a + b, clamp=True, keeps_high_half=True, op_sel=True
    ),
    _op(
        "v_sub_i16", "i16", ("i16", "i16"), lambda a, b: a - b, clamp=True, keeps_high_half=True, op_sel=True
    ),
]

SHIFTS_64 = [
    _op("v_lshlrev_b64", "b64", ("u32", "u64"), lambda n, a: a << (n & 63)),
    _op("v_lshrrev_b64", "b64", ("u32", "u64"), lambda n, a: a >> (n & 63)),
    _op("v_ashrrev_i64", "i64", ("u32", "i64"), lambda n, a: a >> (n & 63)),
]


def _fused(name: str, fmt: Format, kind: str, **flags: bool) -> Op:
    return _op(name, kind, (kind,) * 3, lambda a, b, c: formats.fma(fmt, a, b, c), **flags)


def _mad_f16(a: int, b: int, c: int) -> int:
    return mad_rounding_twice(F16, a, b, c)


HALF = {"keeps_high_half": True, "op_sel": True}

FLOATS = [
    _fused("v_fma_f32", F32, "f32"),
    _fused("v_fma_f64", F64, "f64"),
    _fused("v_fma_f16", F16, "f16", **HALF),
    _fused("v_fma_legacy_f16", F16, "f16"),
    _op("v_mad_f32", "f32", ("f32",) * 3, mad_f32),
    _op("v_mad_f16", "f16", ("f16",) * 3, _mad_f16, **HALF),
    _op("v_mad_legacy_f16", "f16", ("f16",) * 3, _mad_f16),
    _op("v_add_f64", "f64", ("f64", "f64"), lambda a, b: formats.add(F64, a, b)),
    _op("v_mul_f64", "f64", ("f64", "f64"), lambda a, b: formats.multiply(F64, a, b)),
    _op("v_max_f64", "f64", ("f64", "f64"), lambda a, b: formats.maximum(F64, a, b)),
    _op("v_min_f64", "f64", ("f64", "f64"), lambda a, b: formats.minimum(F64, a, b)),
    _op("v_ldexp_f32", "f32", ("f32", "i32"), lambda a, n: ldexp(F32, a, n)),
    _op("v_ldexp_f64", "f64", ("f64", "i32"), lambda a, n: ldexp(F64, a, n)),
    *_three_float("f32"),
    *_three_float("f16"),
]

VOP3 = [*BIT_FIELDS, *BYTES, *MULTIPLIES, *SHIFTS_64, *FLOATS, *_three_integer(), *_packing()]
