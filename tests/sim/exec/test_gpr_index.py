"""VGPR indexing (s_set_gpr_idx): M0 moves the register numbers of sources and destination."""

from collections.abc import Iterator

import pytest

from tests.kit.asm import LANES, Snippet
from tests.sim.exec.build import as_lanes
from tests.sim.exec.case import Batch, Case, Expect


def _rows() -> dict[int, list[int]]:
    return {r: [r * 0x1000 + lane for lane in range(LANES)] for r in range(10, 16)}


def _case(body: str, expected: dict[int, list[int]], m0: int | None = None) -> Case:
    snippet = Snippet(
        body,
        vgprs={r: as_lanes(row) for r, row in _rows().items()},
        sgprs={30: 3, 31: 0x102},  # only the low eight bits of an index count
        read_vgprs=tuple(range(10, 16)),
    )
    rows = _rows() | expected
    return Case(body, snippet, vgprs=tuple(Expect(r, "b32", row) for r, row in rows.items()), m0=m0)


def source_cases() -> Iterator[Case]:
    rows = _rows()
    body = "s_set_gpr_idx_on s30, gpr_idx(SRC0)\nv_mov_b32_e32 v10, v11\ns_set_gpr_idx_off"
    yield _case(body, {10: rows[14]}, m0=0xFFFF1F03)
    body = "s_set_gpr_idx_on s31, gpr_idx(SRC0)\nv_add_u32_e32 v10, v11, v12\ns_set_gpr_idx_off"
    yield _case(body, {10: [a + b for a, b in zip(rows[13], rows[12], strict=True)]})
    body = "s_set_gpr_idx_on s31, gpr_idx(SRC1)\nv_sub_u32_e32 v10, v13, v11\ns_set_gpr_idx_off"
    yield _case(body, {10: [0] * LANES})


def destination_cases() -> Iterator[Case]:
    rows = _rows()
    body = """s_set_gpr_idx_on s30, gpr_idx(DST)
        v_mov_b32_e32 v10, v11
        s_set_gpr_idx_off
        v_mov_b32_e32 v12, v15"""
    yield _case(body, {13: rows[11], 12: rows[15]})
    body = "s_set_gpr_idx_on s31, gpr_idx(SRC0,DST)\nv_mov_b32_e32 v10, v11\ns_set_gpr_idx_off"
    yield _case(body, {12: rows[13]})


def mode_cases() -> Iterator[Case]:
    """Index and mode can change while indexing is on; scalar sources are not moved."""
    rows = _rows()
    body = """s_set_gpr_idx_on s30, gpr_idx(DST)
        s_set_gpr_idx_idx s31
        v_mov_b32_e32 v10, v15
        s_set_gpr_idx_mode gpr_idx(SRC0)
        v_mov_b32_e32 v11, v10
        v_mov_b32_e32 v13, s30
        s_set_gpr_idx_off"""
    yield _case(body, {12: rows[15], 11: rows[15], 13: [3] * LANES})


BATCH = Batch({"source": source_cases, "destination": destination_cases, "mode": mode_cases})


@pytest.mark.parametrize("group", BATCH.groups)
def test_gpr_index(group: str) -> None:
    BATCH.check(group)
