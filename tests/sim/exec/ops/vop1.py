"""References of the one-source vector opcodes."""

import math
from collections.abc import Callable
from fractions import Fraction

from tests.sim.exec import formats
from tests.sim.exec.formats import F16, F32, F64, Format
from tests.sim.exec.ops.op import FORMATS, Op

I32 = (-(1 << 31), (1 << 31) - 1)
U32 = (0, (1 << 32) - 1)
I16 = (-(1 << 15), (1 << 15) - 1)
U16 = (0, (1 << 16) - 1)
BELOW_ONE = {"f16": 0x3BFF, "f32": 0x3F7FFFFF, "f64": 0x3FEFFFFFFFFFFFFF}


def half_up(exact: Fraction) -> int:
    return math.floor(exact + Fraction(1, 2))


def _reverse(bits: int) -> int:
    return int(f"{bits:032b}"[::-1], 2)


def leading_zeros(bits: int) -> int:
    return 32 - bits.bit_length() if bits else -1


def leading_sign_bits(bits: int) -> int:
    """Position, from the top, of the first bit unlike the sign; -1 if there is none."""
    value = bits ^ (0xFFFFFFFF if bits >> 31 else 0)
    return leading_zeros(value)


def trailing_zeros(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _fract(kind: str) -> Callable[[int], int]:
    fmt = FORMATS[kind]

    def meaning(a: int) -> int:
        if fmt.is_nan(a) or fmt.is_infinite(a):
            return fmt.nan
        exact = fmt.value(a)
        rounded = fmt.round(exact - math.floor(exact))
        return min(rounded, BELOW_ONE[kind])  # a tiny negative number must not give 1

    return meaning


def frexp_exponent(fmt: Format, a: int) -> int:
    if fmt.is_nan(a) or fmt.is_infinite(a) or fmt.is_zero(a):
        return 0
    exact = abs(fmt.value(a))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    while exact >= Fraction(2) ** exponent:
        exponent += 1
    while exact < Fraction(2) ** (exponent - 1):
        exponent -= 1
    return exponent


def _frexp_mantissa(fmt: Format) -> Callable[[int], int]:
    def meaning(a: int) -> int:
        if fmt.is_nan(a) or fmt.is_infinite(a) or fmt.is_zero(a):
            return a
        return fmt.round(fmt.value(a) / Fraction(2) ** frexp_exponent(fmt, a))

    return meaning


def _real(
    kind: str, function: Callable[[float], float], *, flush: bool = False, at_zero: float | None = None
) -> Callable[[int], float]:
    """A transcendental in double precision. `at_zero` is |result| at a zero, with the zero's sign."""
    fmt = FORMATS[kind]

    def meaning(a: int) -> float:
        bits = fmt.flush(a) if flush else a
        if fmt.is_nan(bits):
            return math.nan
        if fmt.is_zero(bits) and at_zero is not None:
            return -at_zero if fmt.is_negative(bits) else at_zero
        if fmt.is_infinite(bits):
            return function(-math.inf if fmt.is_negative(bits) else math.inf)
        return function(float(fmt.value(bits)))

    return meaning


def _exp2(x: float) -> float:
    return math.inf if x > 1023 else 2.0**x


def _log2(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log2(x)


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _rsq(x: float) -> float:
    return math.nan if x < 0 else (0.0 if math.isinf(x) else 1 / math.sqrt(x))


def _turns(function: Callable[[float], float]) -> Callable[[float], float]:
    """sin and cos of an argument in revolutions; nan stands for an input outside +-256."""
    return lambda x: math.nan if math.isinf(x) else function(2 * math.pi * math.remainder(x, 1.0))


def _rounded(name: str, rounding: Callable[[Fraction], int]) -> list[Op]:
    ops = []
    for kind, fmt in FORMATS.items():
        wide = kind == "f64"
        ops.append(
            Op(
                f"v_{name}_{kind}",
                kind,
                (kind,),
                lambda a, fmt=fmt: formats.to_integral(fmt, a, rounding),
                sdwa=not wide,
                dpp=not wide,
            )
        )
    return ops


def _approximate(kind: str, ulp: float, flush: bool) -> list[Op]:
    real = {
        "exp": _real(kind, _exp2, flush=flush),
        "log": _real(kind, _log2, flush=flush),
        "rcp": _real(kind, lambda x: 1 / x, flush=flush, at_zero=math.inf),
        "rsq": _real(kind, _rsq, flush=flush, at_zero=math.inf),
        "sqrt": _real(kind, _sqrt, flush=flush, at_zero=0.0),
    }
    return [Op(f"v_{name}_{kind}", kind, (kind,), function, ulp=ulp) for name, function in real.items()]


def _from_int(name: str, dst: str, src: str, **flags: bool) -> Op:
    fmt = FORMATS[dst]
    return Op(name, dst, (src,), lambda a: fmt.round(Fraction(a)), **flags)


def _to_int(
    name: str, dst: str, src: str, limits: tuple[int, int], rounding: Callable[[Fraction], int] = math.trunc
) -> Op:
    fmt = FORMATS[src]
    narrow = src != "f64"
    return Op(
        name, dst, (src,), lambda a: formats.to_integer(fmt, a, *limits, rounding), sdwa=narrow, dpp=narrow
    )


def _convert(dst: str, src: str) -> Op:
    narrow = "f64" not in (dst, src)
    return Op(
        f"v_cvt_{dst}_{src}",
        dst,
        (src,),
        lambda a: formats.convert(FORMATS[src], FORMATS[dst], a),
        sdwa=narrow,
        dpp=narrow,
    )


NARROW = {"sdwa": False, "dpp": False}

BITS = [
    Op("v_mov_b32", "b32", ("b32",), lambda a: a),
    Op("v_not_b32", "b32", ("b32",), lambda a: ~a),
    Op("v_bfrev_b32", "b32", ("b32",), _reverse),
    Op("v_ffbh_u32", "u32", ("u32",), leading_zeros),
    Op("v_ffbh_i32", "u32", ("u32",), leading_sign_bits),
    Op("v_ffbl_b32", "u32", ("u32",), trailing_zeros),
]

CONVERSIONS = [
    _from_int("v_cvt_f32_i32", "f32", "i32"),
    _from_int("v_cvt_f32_u32", "f32", "u32"),
    _from_int("v_cvt_f64_i32", "f64", "i32", **NARROW),
    _from_int("v_cvt_f64_u32", "f64", "u32", **NARROW),
    _from_int("v_cvt_f16_i16", "f16", "i16"),
    _from_int("v_cvt_f16_u16", "f16", "u16"),
    _to_int("v_cvt_i32_f32", "i32", "f32", I32),
    _to_int("v_cvt_u32_f32", "u32", "f32", U32),
    _to_int("v_cvt_i32_f64", "i32", "f64", I32),
    _to_int("v_cvt_u32_f64", "u32", "f64", U32),
    _to_int("v_cvt_i16_f16", "i16", "f16", I16),
    _to_int("v_cvt_u16_f16", "u16", "f16", U16),
    _to_int("v_cvt_rpi_i32_f32", "i32", "f32", I32, half_up),
    _to_int("v_cvt_flr_i32_f32", "i32", "f32", I32, math.floor),
    _convert("f16", "f32"),
    _convert("f32", "f16"),
    _convert("f32", "f64"),
    _convert("f64", "f32"),
] + [
    Op(f"v_cvt_f32_ubyte{n}", "f32", ("b32",), lambda a, n=n: F32.round(Fraction(a >> 8 * n & 255)))
    for n in range(4)
]

ROUNDINGS = [
    *_rounded("trunc", math.trunc),
    *_rounded("ceil", math.ceil),
    *_rounded("floor", math.floor),
    *_rounded("rndne", round),
    *(Op(f"v_fract_{k}", k, (k,), _fract(k), sdwa=k != "f64", dpp=k != "f64") for k in FORMATS),
]

FREXP = [
    Op("v_frexp_exp_i32_f32", "i32", ("f32",), lambda a: frexp_exponent(F32, a)),
    Op("v_frexp_exp_i16_f16", "i16", ("f16",), lambda a: frexp_exponent(F16, a)),
    Op("v_frexp_exp_i32_f64", "i32", ("f64",), lambda a: frexp_exponent(F64, a), **NARROW),
    Op("v_frexp_mant_f32", "f32", ("f32",), _frexp_mantissa(F32)),
    Op("v_frexp_mant_f16", "f16", ("f16",), _frexp_mantissa(F16)),
    Op("v_frexp_mant_f64", "f64", ("f64",), _frexp_mantissa(F64), **NARROW),
]

TRANSCENDENTALS = [
    *_approximate("f32", ulp=1, flush=True),
    *_approximate("f16", ulp=0.51, flush=False),
    Op(
        "v_rcp_iflag_f32", "f32", ("f32",), _real("f32", lambda x: 1 / x, flush=True, at_zero=math.inf), ulp=1
    ),
    Op("v_exp_legacy_f32", "f32", ("f32",), _real("f32", _exp2, flush=True), ulp=1),
    Op("v_log_legacy_f32", "f32", ("f32",), _real("f32", _log2, flush=True), ulp=1),
    # The double precision estimates are seeds of 2^29 ULP for a Newton iteration.
    Op("v_rcp_f64", "f64", ("f64",), _real("f64", lambda x: 1 / x, at_zero=math.inf), ulp=2**29, **NARROW),
    Op("v_rsq_f64", "f64", ("f64",), _real("f64", _rsq, at_zero=math.inf), ulp=2**29, **NARROW),
    Op("v_sqrt_f64", "f64", ("f64",), _real("f64", _sqrt, at_zero=0.0), ulp=2**29, **NARROW),
]

SINES = {
    "v_sin_f32": _real("f32", _turns(math.sin)),
    "v_cos_f32": _real("f32", _turns(math.cos)),
    "v_sin_f16": _real("f16", _turns(math.sin)),
    "v_cos_f16": _real("f16", _turns(math.cos)),
}

VOP1 = [*BITS, *CONVERSIONS, *ROUNDINGS, *FREXP, *TRANSCENDENTALS]
