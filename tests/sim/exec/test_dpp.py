"""Data-parallel primitives: every control, with masks, bound_ctrl and inactive source lanes."""

import itertools
from functools import partial

import pytest

from tests.kit.asm import ALL_LANES, LANES
from tests.sim.exec.build import Dpp, Variant, build_case, partial_exec
from tests.sim.exec.case import Batch, Case
from tests.sim.exec.ops.op import Op
from tests.sim.exec.ops.vop1 import VOP1
from tests.sim.exec.ops.vop2 import VOP2

Sources = tuple[int | None, ...]

MOVE = Op("v_mov_b32", "b32", ("b32",), lambda a: a)
ADD_F32 = next(op for op in VOP2 if op.name == "v_add_f32")
SUB_U16 = next(op for op in VOP2 if op.name == "v_sub_u16")
FMAC = next(op for op in VOP2 if op.name == "v_fmac_f32")
CONVERT = next(op for op in VOP1 if op.name == "v_cvt_f16_f32")


def _row_shift(amount: int) -> Sources:
    """Positive: towards higher lanes, so lane i reads lane i - amount of its row."""
    return tuple(i - amount if 0 <= i % 16 - amount < 16 else None for i in range(LANES))


def _quad(*order: int) -> Sources:
    return tuple(i & ~3 | order[i & 3] for i in range(LANES))


CONTROLS: dict[str, Sources] = {
    "quad_perm:[1,0,3,2]": _quad(1, 0, 3, 2),
    "quad_perm:[2,3,0,1]": _quad(2, 3, 0, 1),
    "quad_perm:[0,0,0,0]": _quad(0, 0, 0, 0),
    "quad_perm:[3,2,0,1]": _quad(3, 2, 0, 1),
    **{f"row_shl:{n}": _row_shift(-n) for n in range(1, 16)},
    **{f"row_shr:{n}": _row_shift(n) for n in range(1, 16)},
    **{f"row_ror:{n}": tuple(i & ~15 | (i - n) & 15 for i in range(LANES)) for n in range(1, 16)},
    "row_mirror": tuple(i ^ 15 for i in range(LANES)),
    "row_half_mirror": tuple(i ^ 7 for i in range(LANES)),
    "wave_shl:1": tuple(i + 1 if i < 63 else None for i in range(LANES)),
    "wave_shr:1": tuple(i - 1 if i > 0 else None for i in range(LANES)),
    "wave_rol:1": tuple((i + 1) % LANES for i in range(LANES)),
    "wave_ror:1": tuple((i - 1) % LANES for i in range(LANES)),
}
# The broadcasts are meant for the rows behind the source row: all rows but the first, or the upper half.
BROADCASTS: dict[str, tuple[Sources, int]] = {
    "row_bcast:15": (tuple(i // 16 * 16 - 1 if i > 15 else None for i in range(LANES)), 0xA),
    "row_bcast:31": (tuple(31 if i > 31 else None for i in range(LANES)), 0xC),
}


def control_cases(control: str) -> list[Case]:
    sources = CONTROLS[control]
    cases = [
        build_case(op, Variant("_dpp", dpp=Dpp(control, sources, bound_ctrl), exec=execution))
        for op in (MOVE, ADD_F32)
        for bound_ctrl in (False, True)
        for execution in (ALL_LANES, partial_exec(control))
    ]
    return cases


def broadcast_cases(control: str) -> list[Case]:
    sources, rows = BROADCASTS[control]
    cases = [
        build_case(op, Variant("_dpp", dpp=Dpp(control, sources, row_mask=rows))) for op in (MOVE, ADD_F32)
    ]
    return cases


def row_and_bank_masks_cases() -> list[Case]:
    sources = CONTROLS["row_ror:3"]
    cases = [
        build_case(MOVE, Variant("_dpp", dpp=Dpp("row_ror:3", sources, row_mask=rows, bank_mask=banks)))
        for rows, banks in itertools.product((0, 1, 5, 8, 15), (0, 1, 6, 15))
    ]
    return cases


def masks_with_bound_ctrl_cases() -> list[Case]:
    """A masked lane keeps its register even when bound_ctrl would give it a zero."""
    dpp = Dpp("row_shr:5", _row_shift(5), bound_ctrl=True, row_mask=6, bank_mask=11)
    cases = [build_case(op, Variant("_dpp", dpp=dpp, exec=partial_exec("mask"))) for op in (MOVE, SUB_U16)]
    return cases


def operation_on_crossed_lanes_cases(op: Op) -> list[Case]:
    """neg and abs act on the crossed value; an accumulator is never crossed."""
    cases = []
    for control in ("row_mirror", "quad_perm:[1,0,3,2]", "row_shl:4"):
        modified = 1 if op is not SUB_U16 else 0
        cases.append(build_case(op, Variant("_dpp", dpp=Dpp(control, CONTROLS[control]))))
        cases.append(
            build_case(op, Variant("_dpp", dpp=Dpp(control, CONTROLS[control]), neg=modified, abs=modified))
        )
    return cases


BATCH = Batch(
    {control: partial(control_cases, control) for control in CONTROLS}
    | {control: partial(broadcast_cases, control) for control in BROADCASTS}
    | {"masks": row_and_bank_masks_cases, "masks with bound_ctrl": masks_with_bound_ctrl_cases}
    | {
        f"{op.name} on crossed lanes": partial(operation_on_crossed_lanes_cases, op)
        for op in (FMAC, SUB_U16, CONVERT, ADD_F32)
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_dpp(group: str) -> None:
    BATCH.check(group)
