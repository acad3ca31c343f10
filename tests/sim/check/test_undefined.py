"""Undefined values may be moved about, and are refused where they decide something."""

from dataclasses import dataclass

import pytest

from tests.sim.check.bench import Report, fault_of, result_of

DWORD = "global_store_dword v1, v2, s[8:9]"


@dataclass(frozen=True)
class Undefined:
    """A kernel that uses what was never written. `define` before it makes it right."""

    name: str
    body: str
    define: str
    reason: str
    lane: int = -1

    @property
    def instruction(self) -> str:
        return self.body.splitlines()[-1]


def stored(register: str, lane: int, origin: str) -> str:
    return f"{register} lane {lane} is used as data stored to global memory without a defined value: {origin}"


def address(register: str, origin: str = "it was never written") -> str:
    return f"{register} is used as an address without a defined value: {origin}"


UNDEFINED = [
    Undefined("stored", DWORD, "v_mov_b32_e32 v2, 0", stored("v2", 0, "it was never written"), 0),
    Undefined(
        "stored_by_some_lanes",
        f"s_mov_b64 exec, 0xff\nv_mov_b32_e32 v2, 7\ns_mov_b64 exec, -1\n{DWORD}",
        "v_mov_b32_e32 v2, 0",
        stored("v2", 8, "it was never written"),
        8,
    ),
    Undefined(
        "after_arithmetic",
        f"v_add_u32_e32 v3, v5, v0\nv_mul_lo_u32 v2, v3, v3\n{DWORD}",
        "v_mov_b32_e32 v5, 0",
        stored("v2", 0, "it derives from v5, which was never written"),
        0,
    ),
    Undefined(
        "scalar_operand",
        f"v_add_u32_e32 v2, s20, v0\n{DWORD}",
        "s_mov_b32 s20, 0",
        stored("v2", 0, "it derives from s20, which was never written"),
        0,
    ),
    Undefined(
        "selected",
        f"s_mov_b64 vcc, 0x10\nv_cndmask_b32_e32 v2, v0, v5, vcc\n{DWORD}",
        "v_mov_b32_e32 v5, 0",
        stored("v2", 4, "it derives from v5, which was never written"),
        4,
    ),
    Undefined(
        "through_lds",
        f"ds_write_b32 v1, v5\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\n{DWORD}",
        "v_mov_b32_e32 v5, 0",
        stored("v2", 0, "it derives from LDS byte 0, which was never written"),
        0,
    ),
    Undefined(
        "lds",
        f"ds_read_b32 v2, v1 offset:16\ns_waitcnt lgkmcnt(0)\n{DWORD}",
        "v_mov_b32_e32 v3, 0\nds_write_b32 v1, v3 offset:16",
        stored("v2", 0, "it derives from LDS byte 0x10, which was never written"),
        0,
    ),
    Undefined(
        "one_byte_of_lds",
        "ds_write_b8 v1, v0\nds_write_b16 v1, v0 offset:2\n"
        f"ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\n{DWORD}",
        "ds_write_b8 v1, v0 offset:1",
        stored("v2", 0, "it derives from LDS byte 0x1, which was never written"),
        0,
    ),
    Undefined(
        "vector_address",
        "global_load_dword v2, v5, s[8:9]",
        "v_mov_b32_e32 v5, 0",
        "v5 lane 0 is used as an address without a defined value: it was never written",
        0,
    ),
    Undefined(
        "lds_address",
        "ds_write_b32 v5, v0",
        "v_mov_b32_e32 v5, v1",
        "v5 lane 0 is used as an address without a defined value: it was never written",
        0,
    ),
    Undefined(
        "scalar_address",
        "s_load_dword s20, s[30:31], 0x0",
        "s_mov_b64 s[30:31], s[8:9]",
        address("s30"),
    ),
    Undefined(
        "scalar_base",
        "global_load_dword v2, v1, s[30:31]",
        "s_mov_b64 s[30:31], s[8:9]",
        address("s30"),
    ),
    Undefined(
        "branch_on_scc",
        "s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 0",
        "s_mov_b32 s20, 0",
        "SCC, the condition of the branch, has no defined value: it derives from s20, which was never "
        "written",
    ),
    Undefined(
        "branch_on_vcc",
        "v_cmp_eq_u32_e32 vcc, v5, v5\ns_cbranch_vccz 0",
        "v_mov_b32_e32 v5, 0",
        "VCC, the condition of the branch, has no defined value: it derives from v5, which was never written",
    ),
    Undefined(
        "exec",
        "s_and_b64 exec, exec, s[20:21]",
        "s_mov_b64 s[20:21], -1",
        "the new EXEC has no defined value: it derives from s20, which was never written",
    ),
    Undefined(
        "exec_by_a_comparison",
        "v_cmpx_eq_u32_e32 vcc, v5, v5",
        "v_mov_b32_e32 v5, 0",
        "EXEC is written from a comparison without a defined value in lane 0: it derives from v5, which was "
        "never written",
        0,
    ),
    Undefined(
        "lane_number",
        "v_readlane_b32 s21, v0, s20",
        "s_mov_b32 s20, 0",
        "s20 is used as a lane number without a defined value: it was never written",
    ),
    Undefined(
        "jump_target",
        "s_setpc_b64 s[20:21]",
        "s_getpc_b64 s[20:21]\ns_add_u32 s20, s20, 12\ns_addc_u32 s21, s21, 0",
        "s20 is used as a jump target without a defined value: it was never written",
    ),
    Undefined(
        "lane_that_was_not_written",
        f"s_mov_b64 exec, 1\nv_mov_b32_e32 v5, 0\ns_mov_b64 exec, -1\nv_readlane_b32 s20, v5, 3\n"
        f"v_mov_b32_e32 v2, s20\n{DWORD}",
        "v_mov_b32_e32 v5, 0",
        stored("v2", 0, "it derives from v5, which was never written"),
        0,
    ),
]


@pytest.mark.parametrize("case", UNDEFINED, ids=lambda case: case.name)
def test_use_of_what_was_never_written(case: Undefined) -> None:
    report = fault_of(case.name, case.body)
    expected = Report(case.reason, case.name, case.instruction, (0, 0, 0), 0, case.lane)
    assert report == expected


@pytest.mark.parametrize("case", UNDEFINED, ids=lambda case: case.name)
def test_use_of_what_was_written(case: Undefined) -> None:
    result_of(case.name, f"{case.define}\n{case.body}")


@pytest.mark.parametrize(
    "body",
    [
        "v_mov_b32_e32 v3, v5\nv_add_f32_e32 v3, v3, v3",
        f"s_mov_b64 vcc, 0\nv_cndmask_b32_e32 v2, v0, v5, vcc\n{DWORD}",
        f"v_bfi_b32 v2, v0, v0, v5\n{DWORD}",
        "s_mov_b64 exec, 0xff\nv_mov_b32_e32 v2, 7\n" + DWORD,
        "s_mov_b32 s20, 1\ns_or_b64 s[22:23], s[20:21], exec\ns_mov_b64 exec, s[22:23]",
        "v_cmp_eq_u32_e32 vcc, v5, v5\ns_or_b64 vcc, vcc, exec\ns_cbranch_vccnz 0",
        "ds_write_b32 v1, v5",
        "global_load_dwordx2 v[2:3], v1, s[8:9]\ns_waitcnt vmcnt(0)\n" + DWORD,
    ],
    ids=[
        "moved",
        "not_selected",
        "merged",
        "lanes_off",
        "bits_decided",
        "vcc_decided",
        "to_lds",
        "half_used",
    ],
)
def test_undefined_values_that_decide_nothing(body: str) -> None:
    result_of("harmless", body)
