"""Sub-dword addressing: every combination of selects, unused modes and sign extensions."""

import itertools
from functools import partial

import pytest

from tests.kit.asm import ALL_LANES
from tests.sim.exec.build import SELECTS, Constant, Sdwa, Variant, build_case, partial_exec
from tests.sim.exec.case import Batch, Case
from tests.sim.exec.ops.op import Op
from tests.sim.exec.ops.vop2 import VOP2

UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
ADD = next(op for op in VOP2 if op.name == "v_add_u32")
MULTIPLY_HALF = next(op for op in VOP2 if op.name == "v_mul_f16")
MOVE = Op("v_mov_b32", "b32", ("b32",), lambda a: a)


def destination_selects_cases(unused: str) -> list[Case]:
    cases = [
        build_case(ADD, Variant("_sdwa", sdwa=Sdwa(dst, unused), exec=execution))
        for dst in SELECTS
        for execution in (ALL_LANES, partial_exec(dst))
    ]
    return cases


def source_selects_cases() -> list[Case]:
    cases = [
        build_case(ADD, Variant("_sdwa", sdwa=Sdwa(src=(first, second), sext=sext)))
        for first, second in itertools.product(SELECTS, SELECTS)
        for sext in ((False, False), (True, False), (False, True), (True, True))
    ]
    return cases


def move_between_parts_cases() -> list[Case]:
    cases = [
        build_case(MOVE, Variant("_sdwa", sdwa=Sdwa(dst, unused, (src,), (sext,))))
        for dst, src in itertools.product(SELECTS, SELECTS)
        for unused in UNUSED
        for sext in (False, True)
    ]
    return cases


def float_modifiers_and_clamp_cases() -> list[Case]:
    halves = ("WORD_0", "WORD_1")
    cases = [
        build_case(
            MULTIPLY_HALF,
            Variant("_sdwa", sdwa=Sdwa(dst, unused, src), neg=neg, abs=absolute, clamp=clamp),
        )
        for dst, unused in itertools.product(("WORD_0", "WORD_1", "DWORD"), UNUSED)
        for src in itertools.product(halves, halves)
        for neg, absolute, clamp in ((0, 0, False), (1, 2, False), (3, 1, True))
    ]
    return cases


def scalar_source_cases() -> list[Case]:
    """gfx9 lets an SDWA source be an SGPR; it is selected from like a VGPR."""
    constant = Constant("s30", 0x8765F4A3, sgpr=True)
    cases = [
        build_case(
            ADD,
            Variant("_sdwa", constants=(constant, None, None), sdwa=Sdwa(src=(s, "DWORD"), sext=(x, False))),
        )
        for s in SELECTS
        for x in (False, True)
    ]
    return cases


BATCH = Batch(
    {unused: partial(destination_selects_cases, unused) for unused in UNUSED}
    | {
        "source selects": source_selects_cases,
        "move between parts": move_between_parts_cases,
        "float modifiers and clamp": float_modifiers_and_clamp_cases,
        "scalar source": scalar_source_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_sdwa(group: str) -> None:
    BATCH.check(group)
