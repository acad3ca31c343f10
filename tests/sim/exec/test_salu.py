"""Scalar arithmetic, compares, EXEC manipulation, and branches."""

import random
from collections.abc import Iterator
from functools import partial

import pytest

from tests.kit.asm import ALL_LANES, Snippet
from tests.sim.exec.case import Batch, Case
from tests.sim.exec.ops.op import signed
from tests.sim.exec.ops.scalar import COMPARES, SAVE_EXEC, SOP1, SOP2, ScalarOp
from tests.sim.exec.ops.values import source_values

DST = 40
SRC = (20, 24, 28)
SAMPLES = 16
VCC, EXEC = 0xDEAD_BEEF_0BAD_F00D, ALL_LANES


def scalar_name(first: int, bits: int) -> str:
    return f"s[{first}:{first + 1}]" if bits == 64 else f"s{first}"


def words(first: int, bits: int, value: int) -> dict[int, int]:
    out = {first: value & 0xFFFFFFFF}
    return out | {first + 1: value >> 32 & 0xFFFFFFFF} if bits == 64 else out


def _samples(op: ScalarOp) -> list[list[int]]:
    """Edge values in all combinations of interest, then random ones."""
    rows = [source_values(f"u{bits}", i, op.name)[:] for i, bits in enumerate(op.src)]
    for i, row in enumerate(rows):
        random.Random(f"{op.name}{i}").shuffle(row)
    picked = [list(sources) for sources in zip(*rows, strict=True)][:SAMPLES]
    return [*picked, [0] * len(op.src), [(1 << bits) - 1 for bits in op.src]]


def scalar_cases(op: ScalarOp) -> Iterator[Case]:
    for n, sources in enumerate(_samples(op)):
        scc = n & 1  # a flag that must be cleared starts set, and the other way round
        result, after = op.meaning(*sources, scc) if op.reads_scc else op.meaning(*sources)
        shown = len(op.src) - int(op.reads_dst)
        texts = [scalar_name(SRC[i], op.src[i]) for i in range(shown)]
        body = f"{op.name} {', '.join([scalar_name(DST, op.dst), *texts])}"
        sgprs: dict[int, int] = {}
        for i in range(shown):
            sgprs |= words(SRC[i], op.src[i], sources[i])
        sgprs |= words(DST, op.dst, sources[-1] if op.reads_dst else 0x0123456789ABCDEF)
        wanted = words(DST, op.dst, result)
        label = f"{body} from {[hex(s) for s in sources]} scc={scc}"
        snippet = Snippet(body, sgprs=sgprs, scc=scc, read_sgprs=tuple(wanted))
        yield Case(label, snippet, sgprs=wanted, scc=scc if after is None else int(after), vcc=VCC, exec=EXEC)


def _pairs(bits: int) -> list[tuple[int, int]]:
    edges = [0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1]
    return [(a, b) for a in edges for b in edges]


def compare_cases() -> Iterator[Case]:
    kinds = [
        (f"s_cmp_{name}_{kind}", 32, kind[0] == "i", test)
        for name, test in COMPARES.items()
        for kind in ("i32", "u32")
    ]
    kinds += [(f"s_cmp_{name}_u64", 64, False, COMPARES[name]) for name in ("eq", "lg")]
    for name, bits, sign, test in kinds:
        for a, b in _pairs(bits):
            truth = test(signed(a, bits), signed(b, bits)) if sign else test(a, b)
            body = f"{name} {scalar_name(20, bits)}, {scalar_name(24, bits)}"
            sgprs = words(20, bits, a) | words(24, bits, b)
            yield Case(
                f"{body} {a:#x} {b:#x}", Snippet(body, sgprs=sgprs, scc=int(not truth)), scc=int(truth)
            )


def bit_compare_cases() -> Iterator[Case]:
    rng = random.Random(5)
    for bits in (32, 64):
        for position in (0, 1, 31, 32, 63, 64 + 7):
            value = rng.getrandbits(bits)
            is_one = value >> (position & bits - 1) & 1
            for wanted in (0, 1):
                body = f"s_bitcmp{wanted}_b{bits} {scalar_name(20, bits)}, s24"
                truth = int(is_one == wanted)
                snippet = Snippet(body, sgprs=words(20, bits, value) | {24: position}, scc=1 - truth)
                yield Case(f"{body} {value:#x} {position}", snippet, scc=truth)


def immediate_cases() -> Iterator[Case]:
    """SOPK: a 16-bit immediate, sign-extended except for the unsigned compares."""
    for immediate in (0, 5, 0x7FFF, -1, -0x8000):
        for value in (0, 5, 0x7FFF, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFF8000):
            number = signed(value, 32)
            for scc in (0, 1):
                start = {"sgprs": {40: value}, "scc": scc, "read_sgprs": (40,)}
                yield _immediate("s_movk_i32", immediate, start, immediate, scc)
                yield _immediate("s_cmovk_i32", immediate, start, immediate if scc else value, scc)
                total = number + immediate
                yield _immediate(
                    "s_addk_i32", immediate, start, total, int(not -(1 << 31) <= total < 1 << 31)
                )
                yield _immediate("s_mulk_i32", immediate, start, number * immediate, scc)
            for name, test in COMPARES.items():
                truth = test(number, immediate)
                start = {"sgprs": {40: value}, "scc": int(not truth), "read_sgprs": (40,)}
                yield _immediate(f"s_cmpk_{name}_i32", immediate, start, value, int(truth))
                unsigned = immediate & 0xFFFF
                truth = test(value, unsigned)
                start = {"sgprs": {40: value}, "scc": int(not truth), "read_sgprs": (40,)}
                yield _immediate(f"s_cmpk_{name}_u32", unsigned, start, value, int(truth))


def _immediate(name: str, immediate: int, start: dict, value: int, scc: int) -> Case:
    body = f"{name} s40, {immediate:#x}"
    return Case(f"{body} {start}", Snippet(body, **start), sgprs={40: value}, scc=scc)


def exec_cases() -> Iterator[Case]:
    source = 0xF0F0_1234_0000_FFFF
    for execution in (ALL_LANES, 0x0F0F_5555_AAAA_0000, 0):
        for name, function in SAVE_EXEC.items():
            after = function(source, execution) & ALL_LANES
            body = f"s_{name}_saveexec_b64 s[40:41], s[20:21]"
            snippet = Snippet(
                body, sgprs=words(20, 64, source), exec=execution, scc=int(after == 0), read_sgprs=(40, 41)
            )
            yield Case(
                f"{body} {execution:#x}",
                snippet,
                sgprs=words(40, 64, execution),
                exec=after,
                scc=int(after != 0),
            )
        for name in ("andn1", "andn2"):
            after = SAVE_EXEC[name](source, execution) & ALL_LANES
            body = f"s_{name}_wrexec_b64 s[40:41], s[20:21]"
            snippet = Snippet(
                body, sgprs=words(20, 64, source), exec=execution, scc=int(after == 0), read_sgprs=(40, 41)
            )
            yield Case(
                f"{body} {execution:#x}", snippet, sgprs=words(40, 64, after), exec=after, scc=int(after != 0)
            )


def operand_cases() -> Iterator[Case]:
    """Constants, literals and named registers as scalar sources and destinations."""
    for text, bits, value in (
        ("0", 32, 0),
        ("64", 32, 64),
        ("-16", 32, -16),
        ("0.5", 32, 0x3F000000),
        ("-4.0", 32, 0xC0800000),
        ("0.15915494", 32, 0x3E22F983),
        ("0x12345678", 32, 0x12345678),
        ("0x12345678", 64, 0x12345678),
        ("-16", 64, -16),
        ("1.0", 64, 0x3FF0000000000000),
        ("vcc_lo", 32, VCC),
        ("vcc_hi", 32, VCC >> 32),
        ("exec_hi", 32, EXEC >> 32),
        ("m0", 32, 0x600DCAFE),
        ("vcc", 64, VCC),
        ("exec", 64, EXEC),
        ("src_shared_base", 64, 0x1_0000_0000_0000),
        ("src_private_base", 64, 0x2_0000_0000_0000),
    ):
        body = f"s_mov_b{bits} {scalar_name(40, bits)}, {text}"
        snippet = Snippet(body, m0=0x600DCAFE, read_sgprs=tuple(words(40, bits, 0)))
        yield Case(body, snippet, sgprs=words(40, bits, value))
    for scc in (0, 1):
        snippet = Snippet("s_mov_b32 s40, src_scc", scc=scc, read_sgprs=(40,))
        yield Case(snippet.body, snippet, sgprs={40: scc}, scc=scc)
    for vcc, execution in ((0, 1), (1, 0)):
        body = "s_mov_b32 s40, src_vccz\ns_mov_b32 s41, src_execz"
        snippet = Snippet(body, vcc=vcc, exec=execution, read_sgprs=(40, 41))
        yield Case(body, snippet, sgprs={40: int(vcc == 0), 41: int(execution == 0)})
    snippet = Snippet("s_mov_b32 vcc_hi, s20\ns_mov_b32 exec_lo, s20\ns_mov_b32 m0, s20", sgprs={20: 0x55})
    yield Case(snippet.body, snippet, vcc=0x55_0BAD_F00D, exec=0xFFFFFFFF_00000055, m0=0x55)


BRANCHES = {
    # mnemonic -> taken for (scc, vcc, exec)
    "s_branch": lambda scc, vcc, execution: True,
    "s_cbranch_scc0": lambda scc, vcc, execution: not scc,
    "s_cbranch_scc1": lambda scc, vcc, execution: bool(scc),
    "s_cbranch_vccz": lambda scc, vcc, execution: vcc == 0,
    "s_cbranch_vccnz": lambda scc, vcc, execution: vcc != 0,
    "s_cbranch_execz": lambda scc, vcc, execution: execution == 0,
    "s_cbranch_execnz": lambda scc, vcc, execution: execution != 0,
}


def branch_cases() -> Iterator[Case]:
    number = 0
    for name, taken in BRANCHES.items():
        for scc, vcc, execution in ((0, 0, 1), (1, 0, 0), (0, 1 << 63, 1 << 63), (1, 1, 0)):
            number += 1
            body = f"s_mov_b32 s40, 1\n{name} branch_{number}\ns_mov_b32 s40, 2\nbranch_{number}:\ns_nop 0"
            snippet = Snippet(body, scc=scc, vcc=vcc, exec=execution, read_sgprs=(40,))
            wanted = 1 if taken(scc, vcc, execution) else 2
            yield Case(f"{name} {scc} {vcc:#x} {execution:#x}", snippet, sgprs={40: wanted})
    loop = """s_mov_b32 s40, 0
        s_movk_i32 s41, 10
        backwards:
        s_add_u32 s40, s40, s41
        s_sub_u32 s41, s41, 1
        s_cmp_lg_u32 s41, 0
        s_cbranch_scc1 backwards"""
    yield Case(loop, Snippet(loop, read_sgprs=(40,)), sgprs={40: 55})
    call = """s_getpc_b64 s[50:51]
        after_getpc:
        s_add_u32 s50, s50, subroutine-after_getpc
        s_addc_u32 s51, s51, 0
        s_movk_i32 s40, 1
        s_swappc_b64 s[52:53], s[50:51]
        s_mulk_i32 s40, 3
        s_branch call_done
        subroutine:
        s_addk_i32 s40, 6
        s_setpc_b64 s[52:53]
        call_done:
        s_nop 0"""
    yield Case(call, Snippet(call, read_sgprs=(40,)), sgprs={40: 21})
    relative = """s_movk_i32 s40, 1
        s_call_b64 s[52:53], near_subroutine
        s_mulk_i32 s40, 3
        s_branch near_done
        near_subroutine:
        s_addk_i32 s40, 6
        s_setpc_b64 s[52:53]
        near_done:
        s_nop 0"""
    yield Case(relative, Snippet(relative, read_sgprs=(40,)), sgprs={40: 21})


def idle_cases() -> Iterator[Case]:
    """Opcodes without an effect on the architectural state of a lone wave."""
    for body in (
        "s_nop 7",
        "s_sleep 1",
        "s_setprio 3",
        "s_barrier",
        "s_waitcnt vmcnt(3) expcnt(1) lgkmcnt(2)",
        "s_icache_inv",
        "s_dcache_inv",
        "s_dcache_wb",
        "s_dcache_inv_vol",
        "s_dcache_wb_vol",
        "s_wakeup",
        "buffer_wbinvl1_vol",
        "buffer_wbinvl1",
    ):
        yield Case(body, Snippet(body, scc=1), scc=1, vcc=VCC, exec=EXEC)


BATCH = Batch(
    {op.name: partial(scalar_cases, op) for op in [*SOP2, *SOP1]}
    | {
        "compare": compare_cases,
        "bit compare": bit_compare_cases,
        "immediate": immediate_cases,
        "exec": exec_cases,
        "operands": operand_cases,
        "branches": branch_cases,
        "idle": idle_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_scalar(group: str) -> None:
    BATCH.check(group)
