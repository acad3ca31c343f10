"""What an operand's text stands for: inline constants of every kind, literals, high registers."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.kit.asm import LANES, Snippet
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.formats import F16, F32, F64, Format

INTEGERS = [*range(65), *range(-16, 0)]
FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
PER_SNIPPET = 12


def float_pattern(fmt: Format, text: str) -> int:
    """The bits of an inline float; 1/(2 pi) has fixed ones."""
    if text.startswith("0.159"):
        return {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}[fmt.width]
    return fmt.round(Fraction(text))


def _snippets(template: str, kind: str, constants: dict[str, int], vgprs: dict[int, int]) -> Iterator[Case]:
    """`template` with {dst} and {constant}, for each constant; results go to v20 and up."""
    wide = kind.endswith("64")
    texts = list(constants)
    step = 2 if wide else 1
    per_snippet = PER_SNIPPET // 2 if wide else PER_SNIPPET
    for start in range(0, len(texts), per_snippet):
        lines, expects = [], []
        for n, text in enumerate(texts[start : start + per_snippet]):
            first = 20 + step * n
            dst = f"v[{first}:{first + 1}]" if wide else f"v{first}"
            lines.append(template.format(dst=dst, constant=text))
            expects.append(Expect(first, kind, [constants[text]] * LANES))
        snippet = Snippet(
            "\n".join(lines),
            vgprs={r: np.full(LANES, value, np.uint32) for r, value in vgprs.items()},
            read_vgprs=tuple(r for e in expects for r in e.registers),
        )
        yield Case(lines[0], snippet, vgprs=tuple(expects))


def _integers(bits: int) -> dict[str, int]:
    return {str(i): i & ((1 << bits) - 1) for i in INTEGERS}


def _floats(fmt: Format) -> dict[str, int]:
    inverse = "0.15915494309189532" if fmt.width == 64 else "0.15915494"
    return {text: float_pattern(fmt, text) for text in (*FLOATS, inverse)}


def dword_cases() -> Iterator[Case]:
    yield from _snippets("v_mov_b32_e32 {dst}, {constant}", "b32", _integers(32) | _floats(F32), {})
    yield from _snippets("v_or_b32_e64 {dst}, {constant}, 0", "b32", _integers(32) | _floats(F32), {})


def f32_cases() -> Iterator[Case]:
    """An integer constant is the number's bits, not its value: a denormal for f32."""
    yield from _snippets("v_add_f32_e32 {dst}, {constant}, v1", "f32", _floats(F32), {1: 0x80000000})
    small = {str(i): i for i in range(1, 65)}
    yield from _snippets("v_add_f32_e32 {dst}, {constant}, v1", "f32", small, {1: 0x80000000})


def f16_cases() -> Iterator[Case]:
    small = {str(i): i for i in range(1, 65)}
    yield from _snippets("v_add_f16_e32 {dst}, {constant}, v1", "f16", _floats(F16) | small, {1: 0x8000})


def u16_cases() -> Iterator[Case]:
    yield from _snippets("v_add_u16_e32 {dst}, {constant}, v1", "u16", _integers(16), {1: 0})


def f64_cases() -> Iterator[Case]:
    yield from _snippets("v_add_f64 {dst}, {constant}, v[1:2]", "f64", _floats(F64), {1: 0, 2: 0x80000000})
    small = {str(i): i for i in range(1, 65)}
    yield from _snippets("v_add_f64 {dst}, {constant}, v[1:2]", "f64", small, {1: 0, 2: 0x80000000})


def u64_cases() -> Iterator[Case]:
    """A 64-bit integer source: integers are sign-extended, floats are doubles."""
    constants = _integers(64) | _floats(F64)
    yield from _snippets("v_lshlrev_b64 {dst}, 0, {constant}", "b64", constants, {})
    yield from _snippets("v_mad_u64_u32 {dst}, s[40:41], v1, v1, {constant}", "b64", _integers(64), {1: 0})


def packed_cases() -> Iterator[Case]:
    """Floats: f16 in the low half of a float source, 32 bits in an integer one. Integers: 32 bits."""
    floats = {text: bits for text, bits in _floats(F16).items() if not text.startswith("0.159")}
    twice = {text: bits * 0x10001 for text, bits in floats.items()}
    yield from _snippets("v_pk_max_f16 {dst}, {constant}, {constant} op_sel_hi:[0,0]", "h32", twice, {})
    yield from _snippets("v_pk_add_f16 {dst}, {constant}, v1", "h32", floats, {1: 0})
    wide = _integers(32) | {text: float_pattern(F32, text) for text in FLOATS}
    yield from _snippets("v_pk_add_u16 {dst}, {constant}, v1", "b32", wide, {1: 0})
    low = {text: (bits & 0xFFFF) * 0x10001 for text, bits in wide.items()}
    yield from _snippets("v_pk_add_u16 {dst}, {constant}, v1 op_sel_hi:[0,1]", "b32", low, {1: 0})
    high = {text: (bits >> 16) * 0x10001 for text, bits in wide.items()}
    yield from _snippets("v_pk_add_u16 {dst}, {constant}, v1 op_sel:[1,0]", "b32", high, {1: 0})


def literal_cases() -> Iterator[Case]:
    values = (0x12345678, 0x80000000, 0xFFFFFFEF, 65, 0x3F800001)
    literals = {f"{v:#x}": v for v in values}
    yield from _snippets("v_mov_b32_e32 {dst}, {constant}", "b32", literals, {})
    yield from _snippets("v_add_u32_e32 {dst}, {constant}, v1", "b32", literals, {1: 0})
    halves = {f"{v:#x}": v for v in (0x1234, 0x3555, 0xF00D)}
    yield from _snippets("v_add_u16_e32 {dst}, {constant}, v1", "u16", halves, {1: 0})


def scalar_cases() -> Iterator[Case]:
    constants = {str(i): i for i in INTEGERS} | {t: float_pattern(F32, t) for t in (*FLOATS, "0.15915494")}
    texts = list(constants)
    for start in range(0, len(texts), 32):
        part = texts[start : start + 32]
        body = "\n".join(f"s_mov_b32 s{40 + n}, {text}" for n, text in enumerate(part))
        wanted = {40 + n: constants[text] & 0xFFFFFFFF for n, text in enumerate(part)}
        yield Case(body.split("\n")[0], Snippet(body, read_sgprs=tuple(wanted)), sgprs=wanted)


def high_register_cases() -> Iterator[Case]:
    """Numbers with two digits, pairs, quads, and the named registers in hexadecimal positions."""
    body = """v_mov_b32_e32 v99, v98
        v_lshlrev_b64 v[96:97], 0, v[94:95]
        s_mov_b32 s79, s63
        s_mov_b64 s[76:77], s[64:65]
        v_mov_b32_e32 v93, s78"""
    lanes = {r: np.arange(LANES, dtype=np.uint32) * r for r in (94, 95, 98)}
    snippet = Snippet(
        body,
        vgprs=lanes,
        sgprs={63: 0x63, 64: 0x64, 65: 0x65, 78: 0x78},
        read_vgprs=(93, 96, 97, 99),
        read_sgprs=(76, 77, 79),
    )
    expects = [Expect(93, "b32", [0x78] * LANES)]
    expects += [Expect(dst, "b32", list(map(int, lanes[src]))) for dst, src in ((96, 94), (97, 95), (99, 98))]
    yield Case(body, snippet, vgprs=tuple(expects), sgprs={76: 0x64, 77: 0x65, 79: 0x63})


BATCH = Batch(
    {
        "dword": dword_cases,
        "f32": f32_cases,
        "f16": f16_cases,
        "u16": u16_cases,
        "f64": f64_cases,
        "64-bit integer": u64_cases,
        "packed": packed_cases,
        "literal": literal_cases,
        "scalar": scalar_cases,
        "high registers": high_register_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_operand(group: str) -> None:
    BATCH.check(group)
