"""References of the scalar opcodes: sources and SCC in, result and SCC out."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.exec.ops.op import signed
from tests.sim.exec.ops.vop1 import leading_sign_bits, trailing_zeros

# (result, SCC); a SCC of None means "unchanged"
Result = tuple[int, int | bool | None]


@dataclass(frozen=True)
class ScalarOp:
    """`meaning` takes the sources (unsigned) and, when `reads_scc`, SCC as the last argument."""

    name: str
    dst: int  # bits
    src: tuple[int, ...]  # bits of each source
    meaning: Callable[..., Result]
    reads_scc: bool = False
    reads_dst: bool = False  # the destination's old value comes as the last source


def _logic(name: str, function: Callable[[int, int], int]) -> list[ScalarOp]:
    ops = []
    for bits in (32, 64):

        def meaning(a: int, b: int, mask: int = (1 << bits) - 1) -> Result:
            result = function(a, b) & mask
            return result, result != 0

        ops.append(ScalarOp(f"s_{name}_b{bits}", bits, (bits, bits), meaning))
    return ops


def _both(
    name: str, source: int | None, meaning: Callable[[int, int], Result], suffix: str = "b"
) -> list[ScalarOp]:
    """One-source opcodes in 32 and 64 bits; `meaning` takes the value and the width."""
    return [
        ScalarOp(f"s_{name}_{suffix}{n}", n if source is None else source, (n,), lambda a, n=n: meaning(a, n))
        for n in (32, 64)
    ]


def _fits(value: int) -> bool:
    return -(1 << 31) <= value < 1 << 31


def _signed_pair(function: Callable[[int, int], int]) -> Callable[[int, int], Result]:
    def meaning(a: int, b: int) -> Result:
        exact = function(signed(a, 32), signed(b, 32))
        return exact, not _fits(exact)

    return meaning


def _nonzero(value: int, bits: int) -> Result:
    value &= (1 << bits) - 1
    return value, value != 0


def _bfe(value: int, control: int, bits: int, sign: bool) -> Result:
    offset = control & (bits - 1)
    size = control >> 16 & 0x7F
    if size == 0:
        return 0, 0
    value = signed(value, bits) if sign else value
    field = value >> offset
    if size < bits:
        field = signed(field, size) if sign else field & ((1 << size) - 1)
    return _nonzero(field, bits)


def _choose(a: int, b: int, scc: int) -> Result:
    return (a if scc else b), None


def _extreme(pick: Callable[[int, int], int], sign: bool) -> Callable[[int, int], Result]:
    def meaning(a: int, b: int) -> Result:
        x, y = (signed(a, 32), signed(b, 32)) if sign else (a, b)
        return pick(x, y), pick(x, y) == x and x != y

    return meaning


def _shift_add(n: int) -> Callable[[int, int], Result]:
    return lambda a, b: ((a << n) + b, (a << n) + b >= 1 << 32)


def _absolute_difference(a: int, b: int) -> Result:
    return _nonzero(abs(signed(signed(a, 32) - signed(b, 32), 32)), 32)


def _bfm(bits: int) -> Callable[[int, int], Result]:
    return lambda size, offset: (((1 << (size & bits - 1)) - 1) << (offset & bits - 1), None)


def _pack(low_half: bool, low_of_b: bool) -> Callable[[int, int], Result]:
    def meaning(a: int, b: int) -> Result:
        low = a & 0xFFFF if low_half else a >> 16
        return low | (b & 0xFFFF if low_of_b else b >> 16) << 16, None

    return meaning


U32 = (32, 32)

ARITHMETIC = [
    ScalarOp("s_add_u32", 32, U32, lambda a, b: (a + b, a + b >= 1 << 32)),
    ScalarOp("s_sub_u32", 32, U32, lambda a, b: (a - b, a < b)),
    ScalarOp("s_add_i32", 32, U32, _signed_pair(lambda a, b: a + b)),
    ScalarOp("s_sub_i32", 32, U32, _signed_pair(lambda a, b: a - b)),
    ScalarOp("s_addc_u32", 32, U32, lambda a, b, c: (a + b + c, a + b + c >= 1 << 32), reads_scc=True),
    ScalarOp("s_subb_u32", 32, U32, lambda a, b, c: (a - b - c, a < b + c), reads_scc=True),
    ScalarOp("s_min_i32", 32, U32, _extreme(min, True)),
    ScalarOp("s_min_u32", 32, U32, _extreme(min, False)),
    ScalarOp("s_max_i32", 32, U32, _extreme(max, True)),
    ScalarOp("s_max_u32", 32, U32, _extreme(max, False)),
    ScalarOp("s_mul_i32", 32, U32, lambda a, b: (a * b, None)),
    ScalarOp("s_mul_hi_u32", 32, U32, lambda a, b: (a * b >> 32, None)),
    ScalarOp("s_mul_hi_i32", 32, U32, lambda a, b: (signed(a, 32) * signed(b, 32) >> 32, None)),
    ScalarOp("s_absdiff_i32", 32, U32, _absolute_difference),
    *(ScalarOp(f"s_lshl{n}_add_u32", 32, U32, _shift_add(n)) for n in (1, 2, 3, 4)),
]

LOGIC = [
    *_logic("and", lambda a, b: a & b),
    *_logic("or", lambda a, b: a | b),
    *_logic("xor", lambda a, b: a ^ b),
    *_logic("andn2", lambda a, b: a & ~b),
    *_logic("orn2", lambda a, b: a | ~b),
    *_logic("nand", lambda a, b: ~(a & b)),
    *_logic("nor", lambda a, b: ~(a | b)),
    *_logic("xnor", lambda a, b: ~(a ^ b)),
]

SHIFTS = [
    *(
        ScalarOp(f"s_lshl_b{n}", n, (n, 32), lambda a, b, n=n: _nonzero(a << (b & n - 1), n))
        for n in (32, 64)
    ),
    *(
        ScalarOp(f"s_lshr_b{n}", n, (n, 32), lambda a, b, n=n: _nonzero(a >> (b & n - 1), n))
        for n in (32, 64)
    ),
    *(
        ScalarOp(f"s_ashr_i{n}", n, (n, 32), lambda a, b, n=n: _nonzero(signed(a, n) >> (b & n - 1), n))
        for n in (32, 64)
    ),
    *(ScalarOp(f"s_bfm_b{n}", n, U32, _bfm(n)) for n in (32, 64)),
    *(ScalarOp(f"s_bfe_u{n}", n, (n, 32), lambda a, b, n=n: _bfe(a, b, n, False)) for n in (32, 64)),
    *(ScalarOp(f"s_bfe_i{n}", n, (n, 32), lambda a, b, n=n: _bfe(a, b, n, True)) for n in (32, 64)),
    ScalarOp("s_pack_ll_b32_b16", 32, U32, _pack(True, True)),
    ScalarOp("s_pack_lh_b32_b16", 32, U32, _pack(True, False)),
    ScalarOp("s_pack_hh_b32_b16", 32, U32, _pack(False, False)),
]

SELECTS = [
    ScalarOp("s_cselect_b32", 32, (32, 32), _choose, reads_scc=True),
    ScalarOp("s_cselect_b64", 64, (64, 64), _choose, reads_scc=True),
]

SOP2 = [*ARITHMETIC, *LOGIC, *SHIFTS, *SELECTS]


def _leading_zeros(a: int, bits: int) -> Result:
    return (bits - a.bit_length() if a else -1), None


def _leading_sign_64(a: int) -> Result:
    flipped = a ^ ((1 << 64) - 1 if a >> 63 else 0)
    return _leading_zeros(flipped, 64)


def _set_bit(value: int, bits: int) -> list[ScalarOp]:
    def meaning(position: int, old: int) -> Result:
        at = 1 << (position & bits - 1)
        return (old | at if value else old & ~at), None

    return [ScalarOp(f"s_bitset{value}_b{bits}", bits, (32, bits), meaning, reads_dst=True)]


def _conditional_move(a: int, old: int, scc: int) -> Result:
    return (a if scc else old), None


SOP1 = [
    *_both("mov", None, lambda a, n: (a, None)),
    *_both("not", None, lambda a, n: _nonzero(~a, n)),
    *_both("brev", None, lambda a, n: (int(f"{a:0{n}b}"[::-1], 2), None)),
    *_both("bcnt0_i32", 32, lambda a, n: _nonzero(n - a.bit_count(), 32)),
    *_both("bcnt1_i32", 32, lambda a, n: _nonzero(a.bit_count(), 32)),
    *_both("ff0_i32", 32, lambda a, n: (trailing_zeros(~a & (1 << n) - 1), None)),
    *_both("ff1_i32", 32, lambda a, n: (trailing_zeros(a), None)),
    *_both("flbit_i32", 32, _leading_zeros),
    ScalarOp("s_flbit_i32", 32, (32,), lambda a: (leading_sign_bits(a), None)),
    ScalarOp("s_flbit_i32_i64", 32, (64,), _leading_sign_64),
    ScalarOp("s_sext_i32_i8", 32, (32,), lambda a: (signed(a, 8), None)),
    ScalarOp("s_sext_i32_i16", 32, (32,), lambda a: (signed(a, 16), None)),
    ScalarOp("s_abs_i32", 32, (32,), lambda a: _nonzero(abs(signed(a, 32)), 32)),
    *(op for value in (0, 1) for bits in (32, 64) for op in _set_bit(value, bits)),
    *(
        ScalarOp(f"s_cmov_b{n}", n, (n, n), _conditional_move, reads_scc=True, reads_dst=True)
        for n in (32, 64)
    ),
]

COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}

# name of s_<name>_saveexec_b64 -> new EXEC from (source, old EXEC)
SAVE_EXEC: dict[str, Callable[[int, int], int]] = {
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "andn2": lambda s, e: s & ~e,
    "orn2": lambda s, e: s | ~e,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
    "andn1": lambda s, e: ~s & e,
    "orn1": lambda s, e: ~s | e,
}
