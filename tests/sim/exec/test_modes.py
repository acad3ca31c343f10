"""What the MODE register changes: denormals, output multipliers, IEEE mode, and s_setreg."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from tests.kit.asm import Snippet
from tests.sim.exec.build import Variant, as_lanes, build_case
from tests.sim.exec.case import Batch, Case, Expect
from tests.sim.exec.ops.op import Op
from tests.sim.exec.ops.vop1 import VOP1
from tests.sim.exec.ops.vop2 import VOP2
from tests.sim.exec.ops.vop3 import VOP3

FLUSHED = (
    "v_add_f32",
    "v_sub_f32",
    "v_mul_f32",
    "v_fmac_f32",
    "v_add_f16",
    "v_mul_f16",
    "v_fma_f32",
    "v_fma_f16",
)
SCALED = ("v_add_f32", "v_mul_f32", "v_fma_f32", "v_add_f16", "v_mul_f16")
OPS = {op.name: op for op in [*VOP1, *VOP2, *VOP3]}


def _suffix(op: Op) -> str:
    return "_e64" if op.e32 else ""


def flush_cases(name: str) -> list[Case]:
    op = OPS[name]
    cases = [
        build_case(op, Variant(_suffix(op), denormals=False, note="flush"), seed=str(i)) for i in range(3)
    ]
    return cases


def output_multiplier_cases(name: str) -> list[Case]:
    """omod acts where the program runs without denormals and without IEEE mode."""
    op = OPS[name]
    plain = Variant(_suffix(op), denormals=False, ieee=False)
    cases = [
        build_case(op, replace(plain, omod=omod, clamp=clamp))
        for omod in (1, 2, 3)
        for clamp in (False, True)
    ]
    return cases


def signalling_cases() -> Iterator[Case]:
    """Without IEEE mode a signalling NaN loses against a number, like a quiet one."""
    quiet, signalling, one = 0x7FC00000, 0x7F800001, 0x3F800000
    left = as_lanes([signalling, one, quiet, one] * 16)
    right = as_lanes([one, signalling, one, quiet] * 16)
    for name in ("v_max_f32", "v_min_f32"):
        body = f"{name}_e32 v20, v1, v2"
        snippet = Snippet(body, vgprs={1: left, 2: right}, read_vgprs=(20,), ieee=False)
        yield Case(f"{body} ieee=0", snippet, vgprs=(Expect(20, "f32", [one] * 64),))


def setreg_cases() -> Iterator[Case]:
    """MODE bits 7:4 switch denormals at run time; s_getreg reads them back."""
    denormal = as_lanes([1] * 64)
    body = """v_add_f32_e32 v20, 0, v1
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
        s_nop 1
        v_add_f32_e32 v21, 0, v1
        s_getreg_b32 s40, hwreg(HW_REG_MODE, 4, 4)
        s_movk_i32 s30, 3
        s_nop 1
        s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s30
        s_nop 1
        v_add_f32_e32 v22, 0, v1
        s_getreg_b32 s41, hwreg(HW_REG_MODE, 0, 8)"""
    snippet = Snippet(body, vgprs={1: denormal}, read_vgprs=(20, 21, 22), read_sgprs=(40, 41))
    expects = tuple(Expect(20 + n, "b32", [value] * 64) for n, value in enumerate((1, 0, 1)))
    yield Case(body, snippet, vgprs=expects, sgprs={40: 0b1100, 41: 0xF0})


BATCH = Batch(
    {f"{name} flush": partial(flush_cases, name) for name in FLUSHED}
    | {f"{name} omod": partial(output_multiplier_cases, name) for name in SCALED}
    | {"signalling NaN": signalling_cases, "setreg": setreg_cases}
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_mode(group: str) -> None:
    BATCH.check(group)
