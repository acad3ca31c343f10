"""How a reference for one vector opcode is written down.

`meaning` maps one lane's source values to its result. Floats are bit patterns, signed integers are
Python ints with a sign, everything else is unsigned; the result is taken modulo the width of `dst`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.exec.formats import F16, F32, F64, Format

FORMATS: dict[str, Format] = {"f16": F16, "f32": F32, "f64": F64}


@dataclass(frozen=True)
class Op:
    """One opcode: types are f16 f32 f64 (with modifiers), i* u* (numbers), b* (plain bits), h32 (two f16).

    Attributes:
        name: mnemonic without an encoding suffix.
        dst: type of the result.
        src: types of the sources.
        meaning: lane values -> lane result.
        ulp: 0 for an exact result, else the allowed distance; `meaning` then gives the exact value
            as a pattern of `dst`, or a Python float (compared in real arithmetic).
        keeps_high_half: a 16-bit result leaves bits 31:16 of the destination alone.
        reads_dst: the destination is also the last source (mac, fmac).
        e32: it exists in the short encoding.
        sdwa, dpp: it exists in these encodings.
        clamp: integer saturation is defined for VOP3's clamp bit.
        modifiers: VOP3's neg and abs apply to float sources.
        op_sel: VOP3's op_sel picks halves of 16-bit operands.
    """

    name: str
    dst: str
    src: tuple[str, ...]
    meaning: Callable[..., int | float]
    ulp: float = 0
    keeps_high_half: bool = False
    reads_dst: bool = False
    e32: bool = True
    sdwa: bool = True
    dpp: bool = True
    clamp: bool = False
    modifiers: bool = True
    op_sel: bool = False


def width(kind: str) -> int:
    return int(kind[1:])


def is_float(kind: str) -> bool:
    return kind in FORMATS


def signed(bits: int, n: int) -> int:
    """The two's complement value of an n-bit pattern."""
    bits &= (1 << n) - 1
    return bits - (1 << n) if bits >> (n - 1) else bits


def decode(kind: str, bits: int) -> int:
    """A register pattern as the value that `meaning` takes."""
    bits &= (1 << width(kind)) - 1
    return signed(bits, width(kind)) if kind[0] == "i" else bits
