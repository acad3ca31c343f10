"""Exact binary floating point on bit patterns: the reference for fp16, fp32 and fp64 results.

Values are exact rationals, so a result is rounded once, from the infinitely precise one. Bit
patterns are unsigned ints of the format's width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary interchange format of IEEE 754."""

    width: int
    mantissa_bits: int  # stored

    @property
    def exponent_bits(self) -> int:
        return self.width - 1 - self.mantissa_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def quiet_bit(self) -> int:
        return 1 << (self.mantissa_bits - 1)

    @property
    def nan(self) -> int:
        return self.infinity | self.quiet_bit

    @property
    def min_normal_exponent(self) -> int:
        return 1 - self.bias

    def magnitude(self, bits: int) -> int:
        return bits & (self.sign_bit - 1)

    def is_nan(self, bits: int) -> bool:
        return self.magnitude(bits) > self.infinity

    def is_signalling(self, bits: int) -> bool:
        return self.is_nan(bits) and not bits & self.quiet_bit

    def is_infinite(self, bits: int) -> bool:
        return self.magnitude(bits) == self.infinity

    def is_zero(self, bits: int) -> bool:
        return self.magnitude(bits) == 0

    def is_denormal(self, bits: int) -> bool:
        return 0 < self.magnitude(bits) < (1 << self.mantissa_bits)

    def is_negative(self, bits: int) -> bool:
        return bool(bits & self.sign_bit)

    def flush(self, bits: int) -> int:
        """A denormal becomes a zero of the same sign."""
        return bits & self.sign_bit if self.is_denormal(bits) else bits

    def value(self, bits: int) -> Fraction:
        """The exact value of a finite number."""
        exponent = (bits & self.infinity) >> self.mantissa_bits
        mantissa = bits & ((1 << self.mantissa_bits) - 1)
        if exponent:
            mantissa |= 1 << self.mantissa_bits
        scale = max(exponent, 1) - self.bias - self.mantissa_bits
        magnitude = Fraction(mantissa << scale) if scale >= 0 else Fraction(mantissa, 1 << -scale)
        return -magnitude if self.is_negative(bits) else magnitude

    def round(self, exact: Fraction, *, zero_sign: bool = False, toward_zero: bool = False) -> int:
        """Nearest even (or toward zero) pattern of `exact`; `zero_sign` is the sign of an exact zero."""
        if exact == 0:
            return self.sign_bit if zero_sign else 0
        sign = self.sign_bit if exact < 0 else 0
        numerator, denominator = abs(exact.numerator), exact.denominator
        exponent = numerator.bit_length() - denominator.bit_length()
        if numerator << max(-exponent, 0) < denominator << max(exponent, 0):
            exponent -= 1
        scale = max(exponent, self.min_normal_exponent) - self.mantissa_bits
        whole, rest = divmod(numerator << max(-scale, 0), denominator << max(scale, 0))
        twice, unit = 2 * rest, denominator << max(scale, 0)
        if not toward_zero and (twice > unit or (twice == unit and whole & 1)):
            whole += 1
        # A carry out of the mantissa, and a denormal that became normal, fall out of the addition:
        # the implicit bit of `whole` adds one to the exponent field.
        pattern = whole + ((scale + self.mantissa_bits + self.bias - 1) << self.mantissa_bits)
        if pattern >= self.infinity:
            pattern = self.infinity - 1 if toward_zero else self.infinity
        return sign | pattern


F16 = Format(16, 10)
F32 = Format(32, 23)
F64 = Format(64, 52)


def fma(fmt: Format, a: int, b: int, c: int) -> int:
    """a * b + c, rounded once."""
    if fmt.is_nan(a) or fmt.is_nan(b) or fmt.is_nan(c):
        return fmt.nan
    sign = fmt.is_negative(a) != fmt.is_negative(b)
    if fmt.is_infinite(a) or fmt.is_infinite(b):
        if fmt.is_zero(a) or fmt.is_zero(b) or (fmt.is_infinite(c) and fmt.is_negative(c) != sign):
            return fmt.nan
        return fmt.infinity | (fmt.sign_bit if sign else 0)
    if fmt.is_infinite(c):
        return c
    exact = fmt.value(a) * fmt.value(b) + fmt.value(c)
    # An exact zero is negative only when both addends are.
    product_is_zero = fmt.is_zero(a) or fmt.is_zero(b)
    both_negative = sign and fmt.is_negative(c)
    return fmt.round(exact, zero_sign=both_negative and (product_is_zero or fmt.is_zero(c)))


def add(fmt: Format, a: int, b: int) -> int:
    return fma(fmt, a, fmt.round(Fraction(1)), b)


def multiply(fmt: Format, a: int, b: int) -> int:
    sign = fmt.is_negative(a) != fmt.is_negative(b)
    return fma(fmt, a, b, fmt.sign_bit if sign else 0)


def divide(fmt: Format, a: int, b: int) -> int:
    if fmt.is_nan(a) or fmt.is_nan(b):
        return fmt.nan
    sign = fmt.is_negative(a) != fmt.is_negative(b)
    signed = fmt.sign_bit if sign else 0
    if fmt.is_infinite(a):
        return fmt.nan if fmt.is_infinite(b) else fmt.infinity | signed
    if fmt.is_infinite(b):
        return signed
    if fmt.is_zero(b):
        return fmt.nan if fmt.is_zero(a) else fmt.infinity | signed
    return fmt.round(fmt.value(a) / fmt.value(b), zero_sign=sign)


def convert(source: Format, target: Format, bits: int, *, toward_zero: bool = False) -> int:
    sign = target.sign_bit if source.is_negative(bits) else 0
    if source.is_nan(bits):
        return target.nan
    if source.is_infinite(bits):
        return sign | target.infinity
    return target.round(source.value(bits), zero_sign=bool(sign), toward_zero=toward_zero)


def negate(fmt: Format, bits: int) -> int:
    return bits ^ fmt.sign_bit


def _pick(fmt: Format, a: int, b: int, *, larger: bool) -> int:
    if fmt.is_zero(a) and fmt.is_zero(b):
        return (a & b) if larger else (a | b)
    if fmt.is_nan(a):
        return b
    if fmt.is_nan(b):
        return a
    key = order_key(fmt)
    return a if (key(a) > key(b)) == larger else b


def order_key(fmt: Format) -> Callable[[int], int]:
    """Maps patterns of non-NaN numbers to ints in numeric order."""
    return lambda bits: -fmt.magnitude(bits) if fmt.is_negative(bits) else bits


def maximum(fmt: Format, a: int, b: int) -> int:
    """IEEE mode's max: a signalling NaN gives a quiet one, a quiet NaN loses against a number."""
    if fmt.is_signalling(a) or fmt.is_signalling(b):
        return fmt.nan
    return _pick(fmt, a, b, larger=True)


def minimum(fmt: Format, a: int, b: int) -> int:
    if fmt.is_signalling(a) or fmt.is_signalling(b):
        return fmt.nan
    return _pick(fmt, a, b, larger=False)


def to_integer(fmt: Format, bits: int, low: int, high: int, rounding: Callable[[Fraction], int]) -> int:
    """float -> int with saturation; NaN gives 0. `rounding` maps the exact value to an int."""
    if fmt.is_nan(bits):
        return 0
    if fmt.is_infinite(bits):
        return low if fmt.is_negative(bits) else high
    return min(max(rounding(fmt.value(bits)), low), high)


def to_integral(fmt: Format, bits: int, rounding: Callable[[Fraction], int]) -> int:
    """floor, ceil, trunc and rint: the integer as a float, zeros keep the sign."""
    if fmt.is_nan(bits):
        return fmt.nan
    if fmt.is_infinite(bits) or fmt.is_zero(bits):
        return bits
    return fmt.round(Fraction(rounding(fmt.value(bits))), zero_sign=fmt.is_negative(bits))
