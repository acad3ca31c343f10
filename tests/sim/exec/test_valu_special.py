"""Vector opcodes that do not fit the table: carries, masks, lanes, embedded literals, division."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tests.kit.asm import ALL_LANES, LANES, Lanes, Snippet
from tests.sim.exec import formats
from tests.sim.exec.build import as_lanes, partial_exec
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.formats import F16, F32, F64, Format
from tests.sim.exec.ops.op import signed
from tests.sim.exec.ops.values import registers, source_values
from tests.sim.exec.ops.vop1 import SINES
from tests.sim.exec.ops.vop2 import mad_f32, mad_rounding_twice

GARBAGE = 0x5A5A_1234_C3C3_9876  # initial VCC: carries in, and bits that must be overwritten


def bit(mask: int, lane: int) -> int:
    return mask >> lane & 1


def lane_mask(bits: list[int]) -> int:
    return sum(1 << lane for lane, b in enumerate(bits) if b)


def split(mask: int) -> tuple[int, int]:
    return mask & 0xFFFFFFFF, mask >> 32


# name -> exact result of (a, b, carry in); the carry out is "does not fit in 32 bits unsigned"
CARRIES: dict[str, tuple[bool, Callable[[int, int, int], int]]] = {
    "v_add_co_u32": (False, lambda a, b, c: a + b),
    "v_sub_co_u32": (False, lambda a, b, c: a - b),
    "v_subrev_co_u32": (False, lambda a, b, c: b - a),
    "v_addc_co_u32": (True, lambda a, b, c: a + b + c),
    "v_subb_co_u32": (True, lambda a, b, c: a - b - c),
    "v_subbrev_co_u32": (True, lambda a, b, c: b - a - c),
}


def carry_cases(name: str) -> Iterator[Case]:
    takes, meaning = CARRIES[name]
    a, b = (source_values("u32", i, name) for i in range(2))
    b = [0xFFFFFFFF - x if i % 4 == 0 else y for i, (x, y) in enumerate(zip(a, b, strict=True))]
    vgprs = {1: as_lanes(a), 2: as_lanes(b)}
    for execution in (ALL_LANES, partial_exec(name)):
        exact = [meaning(x, y, bit(GARBAGE, i)) for i, (x, y) in enumerate(zip(a, b, strict=True))]
        mask = lane_mask([int(not 0 <= e < 1 << 32) for e in exact]) & execution
        lanes = [e if bit(execution, i) else 0x77 for i, e in enumerate(exact)]
        expect = (Expect(20, "b32", lanes),)
        start = vgprs | {20: np.full(LANES, 0x77, np.uint32)}
        body = f"{name}_e32 v20, vcc, v1, v2" + (", vcc" if takes else "")
        yield Case(
            body, Snippet(body, vgprs=start, vcc=GARBAGE, exec=execution, read_vgprs=(20,)), expect, vcc=mask
        )
        body = f"{name}_e64 v20, s[40:41], v1, v2" + (", s[42:43]" if takes else "")
        low, high = split(GARBAGE)
        scalars = {40: 0xFFFFFFFF, 41: 0xFFFFFFFF, 42: low, 43: high}
        snippet = Snippet(
            body, vgprs=start, sgprs=scalars, exec=execution, read_vgprs=(20,), read_sgprs=(40, 41)
        )
        yield Case(body, snippet, expect, sgprs=dict(zip((40, 41), split(mask), strict=True)))


def wide_multiply_cases() -> Iterator[Case]:
    for name, sign in (("v_mad_u64_u32", False), ("v_mad_i64_i32", True)):
        a, b = (source_values("u32", i, name) for i in range(2))
        c = source_values("u64", 2, name)
        numbers = [
            (signed(x, 32) * signed(y, 32) + signed(z, 64)) if sign else x * y + z
            for x, y, z in zip(a, b, c, strict=True)
        ]
        low, high = registers("u64", c, name)
        vgprs = {1: as_lanes(a), 2: as_lanes(b), 4: low, 5: high}
        body = f"{name} v[20:21], s[40:41], v1, v2, v[4:5]"
        snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20, 21), read_sgprs=(40, 41))
        carry = lane_mask([int(n >= 1 << 64) for n in numbers])
        sgprs = {} if sign else dict(zip((40, 41), split(carry), strict=True))
        yield Case(body, snippet, (Expect(20, "u64", numbers),), sgprs=sgprs)
        body = f"{name} v[20:21], s[40:41], v1, 3, 0"
        numbers = [(signed(x, 32) if sign else x) * 3 for x in a]
        yield Case(body, Snippet(body, vgprs=vgprs, read_vgprs=(20, 21)), (Expect(20, "u64", numbers),))


def select_cases() -> Iterator[Case]:
    a, b = (source_values("f32", i, "cndmask") for i in range(2))
    vgprs = {1: as_lanes(a), 2: as_lanes(b)}
    chosen = [b[i] if bit(GARBAGE, i) else a[i] for i in range(LANES)]
    expect = (Expect(20, "b32", chosen),)
    body = "v_cndmask_b32_e32 v20, v1, v2, vcc"
    yield Case(body, Snippet(body, vgprs=vgprs, vcc=GARBAGE, read_vgprs=(20,)), expect)
    body = "v_cndmask_b32_e64 v20, v1, v2, s[40:41]"
    sgprs = dict(zip((40, 41), split(GARBAGE), strict=True))
    yield Case(body, Snippet(body, vgprs=vgprs, sgprs=sgprs, read_vgprs=(20,)), expect)
    body = "v_cndmask_b32_e64 v20, -v1, |v2|, s[40:41]"
    modified = [b[i] & 0x7FFFFFFF if bit(GARBAGE, i) else a[i] ^ 0x80000000 for i in range(LANES)]
    snippet = Snippet(body, vgprs=vgprs, sgprs=sgprs, read_vgprs=(20,))
    yield Case(body, snippet, (Expect(20, "b32", modified),))
    body = "v_cndmask_b32_e64 v20, 0, -1, s[40:41]"
    yes_no = [0xFFFFFFFF if bit(GARBAGE, i) else 0 for i in range(LANES)]
    yield Case(body, Snippet(body, sgprs=sgprs, read_vgprs=(20,)), (Expect(20, "b32", yes_no),))
    selects = "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_0"
    body = f"v_cndmask_b32_sdwa v20, v1, v2, vcc {selects}"
    parts = [b[i] & 255 if bit(GARBAGE, i) else a[i] >> 16 for i in range(LANES)]
    yield Case(body, Snippet(body, vgprs=vgprs, vcc=GARBAGE, read_vgprs=(20,)), (Expect(20, "b32", parts),))


def embedded_literal_cases() -> Iterator[Case]:
    for kind, literal in (("f32", 0x40490FDB), ("f16", 0x4248)):
        rows = [source_values(kind, i, "madmk") for i in range(2)]
        vgprs = {1 + i: registers(kind, row, f"madmk{i}")[0] for i, row in enumerate(rows)}
        before = 0xABCD1234
        vgprs[20] = np.full(LANES, before, np.uint32)
        for name, order in (("v_madmk", (0, None, 1)), ("v_madak", (0, 1, None))):
            texts = [f"{literal:#x}" if i is None else f"v{1 + i}" for i in order]
            body = f"{name}_{kind} v20, {', '.join(texts)}"
            results = []
            for lane in range(LANES):
                values = [literal if i is None else rows[i][lane] for i in order]
                fused = mad_f32(*values) if kind == "f32" else mad_rounding_twice(F16, *values)
                results.append(fused)
            # v_madmk_f16 and v_madak_f16 keep the upper half, like v_mac_f16
            rest = [before >> 16] * LANES if kind == "f16" else ()
            snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
            yield Case(body, snippet, (Expect(20, kind, results, rest=rest),))


def lane_cases() -> Iterator[Case]:
    rng = random.Random(3)
    a: Lanes = as_lanes([rng.getrandbits(32) for _ in range(LANES)])
    b: Lanes = as_lanes([rng.getrandbits(32) for _ in range(LANES)])
    execution = 0xFFFF_0000_FFFF_0100  # first active lane: 8

    def case(body: str, vgpr: Lanes | None = None, s40: int | None = None, exec_: int = execution) -> Case:
        snippet = Snippet(
            body,
            vgprs={1: a, 20: b},
            sgprs={30: 37, 31: 64 + 5},
            exec=exec_,
            read_vgprs=(20,),
            read_sgprs=(40,),
        )
        expect = (Expect(20, "b32", list(b if vgpr is None else vgpr)),)
        return Case(body, snippet, expect, sgprs={} if s40 is None else {40: s40})

    yield case("v_readfirstlane_b32 s40, v1", s40=int(a[8]))
    yield case("v_readfirstlane_b32 s40, v1", s40=int(a[0]), exec_=0)  # no active lane: lane 0
    yield case("v_readlane_b32 s40, v1, 63", s40=int(a[63]))
    yield case("v_readlane_b32 s40, v1, s30", s40=int(a[37]))  # EXEC does not matter
    yield case("v_readlane_b32 s40, v1, s31", s40=int(a[5]))  # the lane number has six bits
    for text, lane, value in (("s30, 5", 5, 37), ("-1, s30", 37, 0xFFFFFFFF), ("s30, 63", 63, 37)):
        written = b.copy()
        written[lane] = value
        yield case(f"v_writelane_b32 v20, {text}", vgpr=written)
    swapped = as_lanes([int(a[i] if bit(execution, i) else b[i]) for i in range(LANES)])
    yield case("v_swap_b32 v20, v1", vgpr=swapped)
    yield case("v_nop")
    mask = 0xDEAD_BEEF_F00D_CAFE
    for name, word, count in (
        ("v_mbcnt_lo_u32_b32", mask & 0xFFFFFFFF, lambda i: min(i, 32)),
        ("v_mbcnt_hi_u32_b32", mask >> 32, lambda i: max(i - 32, 0)),
    ):
        counted = [(word & ((1 << count(i)) - 1)).bit_count() + 7 for i in range(LANES)]
        snippet = Snippet(f"{name} v20, s40, 7", sgprs={40: word}, read_vgprs=(20,))
        yield Case(snippet.body, snippet, (Expect(20, "b32", counted),))


DIVIDE = {
    # The sequence that a compiler emits for a correctly rounded quotient v1 / v2 in v20.
    "f32": """v_div_scale_f32 v10, s[40:41], v2, v2, v1
        v_div_scale_f32 v11, vcc, v1, v2, v1
        v_rcp_f32_e32 v12, v10
        v_fma_f32 v13, -v10, v12, 1.0
        v_fma_f32 v12, v13, v12, v12
        v_mul_f32_e32 v13, v11, v12
        v_fma_f32 v14, -v10, v13, v11
        v_fma_f32 v13, v14, v12, v13
        v_fma_f32 v10, -v10, v13, v11
        s_nop 3
        v_div_fmas_f32 v10, v10, v12, v13
        v_div_fixup_f32 v20, v10, v2, v1""",
    "f64": """v_div_scale_f64 v[10:11], s[40:41], v[3:4], v[3:4], v[1:2]
        v_rcp_f64_e32 v[12:13], v[10:11]
        v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
        v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]
        v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
        v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]
        v_div_scale_f64 v[14:15], vcc, v[1:2], v[3:4], v[1:2]
        v_mul_f64 v[16:17], v[14:15], v[12:13]
        v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]
        s_nop 3
        v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]
        v_div_fixup_f64 v[20:21], v[10:11], v[3:4], v[1:2]""",
}


def division_cases(kind: str) -> Iterator[Case]:
    fmt: Format = {"f32": F32, "f64": F64}[kind]
    for seed in range(6):
        rng = random.Random(f"divide {kind} {seed}")
        a, b = (source_values(kind, i + 1, f"divide{seed}") for i in range(2))
        if seed > 2:  # the whole exponent range
            a, b = ([rng.getrandbits(fmt.width) for _ in range(LANES)] for _ in range(2))
        quotients = [formats.divide(fmt, x, y) for x, y in zip(a, b, strict=True)]
        vgprs = dict(enumerate([*registers(kind, a, ""), *registers(kind, b, "")], 1))
        expect = Expect(20, kind, quotients)
        snippet = Snippet(DIVIDE[kind], vgprs=vgprs, read_vgprs=expect.registers)
        yield Case(f"{kind} division {seed}", snippet, (expect,))


def tiny_quotient_cases(kind: str) -> Iterator[Case]:
    """Quotients around the smallest denormals: exact ties, and values next to one."""
    fmt: Format = {"f32": F32, "f64": F64}[kind]
    for seed in range(4):
        rng = random.Random(f"tiny {kind} {seed}")
        a, b = [], []
        for _ in range(LANES):
            mantissa = rng.getrandbits(fmt.mantissa_bits)
            exponent = rng.randint(fmt.bias - fmt.mantissa_bits, 2 * fmt.bias - 1)
            divisor = mantissa | exponent << fmt.mantissa_bits
            units = Fraction(rng.choice([1, 2, 3, 5, 2 * rng.randrange(1, 99) + 1]), 2)
            tiny = units * Fraction(2) ** (fmt.min_normal_exponent - fmt.mantissa_bits)
            dividend = max(fmt.round(fmt.value(divisor) * tiny) + rng.choice([-1, 0, 0, 1]), 1)
            a.append(dividend | rng.getrandbits(1) * fmt.sign_bit)
            b.append(divisor)
        quotients = [formats.divide(fmt, x, y) for x, y in zip(a, b, strict=True)]
        vgprs = dict(enumerate([*registers(kind, a, ""), *registers(kind, b, "")], 1))
        expect = Expect(20, kind, quotients)
        snippet = Snippet(DIVIDE[kind], vgprs=vgprs, read_vgprs=expect.registers)
        yield Case(f"{kind} tiny quotients {seed}", snippet, (expect,))


def half_division_cases() -> Iterator[Case]:
    """f16 division: an f32 quotient estimate, then v_div_fixup_f16 for the special values."""
    body = """v_cvt_f32_f16_e32 v10, v1
        v_cvt_f32_f16_e32 v11, v2
        v_rcp_f32_e32 v12, v11
        v_mul_f32_e32 v10, v10, v12
        v_cvt_f16_f32_e32 v10, v10
        v_div_fixup_f16 v20, v10, v2, v1"""
    a, b = (source_values("f16", i + 1, "divide") for i in range(2))
    a[::3] = [0x3C00] * len(a[::3])
    quotients: list[int | None] = []
    for x, y in zip(a, b, strict=True):
        special = any(F16.is_nan(v) or F16.is_infinite(v) or F16.is_zero(v) for v in (x, y))
        power_of_two = y & 0x3FF == 0 and not F16.is_denormal(y)
        quotients.append(formats.divide(F16, x, y) if special or power_of_two else None)
    vgprs = {
        1: registers("f16", a, "a")[0],
        2: registers("f16", b, "b")[0],
        20: np.full(LANES, 0xABCD1111, np.uint32),
    }
    snippet = Snippet(body, vgprs=vgprs, read_vgprs=(20,))
    yield Case("f16 division", snippet, (Expect(20, "f16", quotients, rest=[0xABCD] * LANES),))


def sine_cases(name: str) -> Iterator[Case]:
    """The input counts revolutions; the result is close in absolute terms only."""
    half = name.endswith("f16")
    rng = np.random.default_rng(11)
    turns = np.concatenate([np.arange(-4, 4, 0.25), rng.uniform(-256, 256, 16), rng.uniform(-1, 1, 16)])
    if half:
        bits = turns.astype(np.float16).view(np.uint16).astype(np.uint32)
    else:
        bits = turns.astype(np.float32).view(np.uint32)
    expected = [SINES[name](int(v)) for v in bits]
    snippet = Snippet(f"{name}_e32 v20, v1", vgprs={1: bits}, read_vgprs=(20,))
    tolerance = 2.0**-10 if half else 2.0**-20
    expect = Expect(20, "f16" if half else "f32", expected, absolute=tolerance)
    yield Case(snippet.body, snippet, (expect,))


BATCH = Batch(
    {name: partial(carry_cases, name) for name in CARRIES}
    | {name: partial(sine_cases, name) for name in SINES}
    | {f"{kind} division": partial(division_cases, kind) for kind in DIVIDE}
    | {f"{kind} tiny quotients": partial(tiny_quotient_cases, kind) for kind in DIVIDE}
    | {
        "f16 division": half_division_cases,
        "wide multiply": wide_multiply_cases,
        "select": select_cases,
        "embedded literal": embedded_literal_cases,
        "lanes": lane_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_special_opcode(group: str) -> None:
    BATCH.check(group)
