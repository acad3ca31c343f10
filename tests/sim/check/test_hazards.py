"""Instructions that read a register too early, which gfx906 does not prevent by itself."""

from dataclasses import dataclass

import pytest

from tests.sim.check.bench import fault_of, result_of

READY = "".join(f"v_mov_b32_e32 v{r}, 0\n" for r in range(10, 14)) + "s_mov_b64 vcc, 0\ns_nop 4\n"


@dataclass(frozen=True)
class Hazard:
    """`slots` other instructions are needed between producer and consumer."""

    name: str
    producer: str
    consumer: str
    slots: int
    what: str


HAZARDS = [
    Hazard(
        "dpp_source",
        "v_mov_b32_e32 v2, v0",
        "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
        2,
        "DPP reads v2, written by the VALU",
    ),
    Hazard(
        "dpp_source_swapped",
        "v_swap_b32 v10, v2",
        "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
        2,
        "DPP reads v2, written by the VALU",
    ),
    Hazard(
        "dpp_exec",
        "v_cmpx_eq_u32_e32 vcc, v10, v11",
        "v_mov_b32_dpp v3, v10 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        5,
        "DPP runs under EXEC, written by the VALU",
    ),
    Hazard(
        "readlane",
        "v_readfirstlane_b32 s20, v10",
        "v_readlane_b32 s21, v10, s20",
        4,
        "the lane number is in s20, written by the VALU",
    ),
    Hazard(
        "writelane",
        "v_readfirstlane_b32 s20, v10",
        "v_writelane_b32 v11, 7, s20",
        4,
        "the lane number is in s20, written by the VALU",
    ),
    Hazard(
        "readlane_by_vcc",
        "v_cmp_eq_u32_e32 vcc, v0, v0",
        "v_readlane_b32 s21, v10, vcc_lo",
        4,
        "the lane number is in vcc_lo, written by the VALU",
    ),
    Hazard(
        "div_fmas",
        "v_cmp_eq_u32_e32 vcc, v10, v11",
        "v_div_fmas_f32 v3, v10, v11, v12",
        4,
        "v_div_fmas reads VCC, written by the VALU",
    ),
    Hazard(
        "div_fmas_after_div_scale",
        "v_div_scale_f32 v10, vcc, v11, v12, v11",
        "v_div_fmas_f32 v3, v10, v11, v12",
        4,
        "v_div_fmas reads VCC, written by the VALU",
    ),
    Hazard(
        "vmem_base",
        "v_readfirstlane_b32 s9, v2",
        "global_load_dword v3, v1, s[8:9]",
        5,
        "VMEM reads s[8:9], written by the VALU",
    ),
    Hazard(
        "vccz",
        "v_cmp_eq_u32_e32 vcc, v10, v11",
        "v_mov_b32_e32 v3, src_vccz",
        5,
        "vccz is read as a value, and VCC was written by the VALU",
    ),
    Hazard(
        "execz",
        "v_cmpx_eq_u32_e32 vcc, v10, v11",
        "v_mov_b32_e32 v3, src_execz",
        5,
        "execz is read as a value, and EXEC was written by the VALU",
    ),
    Hazard(
        "wide_store",
        "global_store_dwordx4 v10, v[10:13], s[8:9]",
        "v_mov_b32_e32 v12, 1",
        1,
        "the VALU overwrites data that a store of more than 64 bits still reads",
    ),
    Hazard(
        "setreg_getreg",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
        "s_getreg_b32 s20, hwreg(HW_REG_MODE)",
        2,
        "hardware register 1 is accessed, written by s_setreg",
    ),
    Hazard(
        "setreg_setreg",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 3",
        2,
        "hardware register 1 is accessed, written by s_setreg",
    ),
]
# For the VMEM base: the high half of the address, to be moved to s9 again.
PREPARE = READY + "v_mov_b32_e32 v2, s9\n"


def _body(hazard: Hazard, between: list[str]) -> str:
    return PREPARE + "\n".join([hazard.producer, *between, hazard.consumer])


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_too_early(hazard: Hazard) -> None:
    few = hazard.slots - 1
    for between in ["s_mov_b32 s30, 0"] * few, ([f"s_nop {few - 1}"] if few else []), []:
        report = fault_of(hazard.name, _body(hazard, list(between)))
        slots = few if between else 0
        last = hazard.slots - 1
        assert report.reason == (
            f"hazard: {hazard.what}: {hazard.producer} (pc ADDRESS) is {slots} slots before; "
            f"expected {hazard.slots} in between, as s_nop {last} gives"
        )
        assert report.instruction == hazard.consumer


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_far_enough(hazard: Hazard) -> None:
    result_of(hazard.name, _body(hazard, ["s_mov_b32 s30, 0"] * hazard.slots))
    result_of(hazard.name, _body(hazard, [f"s_nop {hazard.slots - 1}"]))


@pytest.mark.parametrize(
    "body",
    [
        "v_mov_b32_e32 v2, v0\nv_add_u32_e32 v3, v2, v2",
        "v_readfirstlane_b32 s20, v0\ns_add_u32 s21, s20, s20",
        "s_mov_b32 s20, 0\nv_readlane_b32 s21, v0, s20",
        "s_mov_b64 s[20:21], s[8:9]\nglobal_load_dword v3, v1, s[20:21]",
        "v_cmp_eq_u32_e32 vcc, v0, v0\nv_cndmask_b32_e32 v3, v0, v1, vcc\ns_cbranch_vccz 0",
        "global_store_dwordx2 v10, v[10:11], s[8:9]\nv_mov_b32_e32 v10, 1",
    ],
    ids=["vgpr", "sgpr_to_salu", "salu_to_readlane", "salu_to_vmem", "vcc", "narrow_store"],
)
def test_what_the_card_waits_for_by_itself(body: str) -> None:
    result_of("interlock", READY + body)


def test_a_hazard_across_a_branch() -> None:
    producer = "v_mov_b32_e32 v2, v0\ns_branch far\nv_mov_b32_e32 v9, 0\nfar:\n"
    consumer = "v_mov_b32_dpp v3, v2 row_shr:1 row_mask:0xf bank_mask:0xf"
    report = fault_of("across", READY + producer + consumer)
    assert "v_mov_b32_e32 v2, v0 (pc ADDRESS) is 1 slots before; expected 2 in between" in report.reason
