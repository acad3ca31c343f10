"""Clocks that a vector ALU instruction holds its SIMD for."""

import json

import pytest

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Module, simulator

RATES = {
    "v_add_f32 v2, v4, v5": 4,
    "v_pk_fma_f16 v2, v4, v5, v6": 4,
    "v_dot2_f32_f16 v2, v4, v5, v6": 4,
    "v_mul_u32_u24 v2, v4, v5": 4,
    "v_mul_hi_u32_u24 v2, v4, v5": 4,
    "v_cmp_lt_u32 vcc, v4, v5": 4,
    "v_cvt_f32_f16 v2, v4": 4,
    "v_mul_lo_u32 v2, v4, v5": 8,
    "v_mul_hi_i32 v2, v4, v5": 8,
    "v_mad_u64_u32 v[2:3], vcc, v4, v5, v[6:7]": 8,
    "v_lshlrev_b64 v[2:3], 3, v[4:5]": 8,
    "v_ashrrev_i64 v[2:3], 3, v[4:5]": 8,
    "v_cmp_lt_u64 vcc, v[4:5], v[6:7]": 8,
    "v_swap_b32 v2, v3": 8,
    "v_fma_f64 v[2:3], v[4:5], v[6:7], v[4:5]": 8,
    "v_cvt_f64_f32 v[2:3], v4": 8,
    "v_exp_f32 v2, v4": 16,
    "v_rcp_f16 v2, v4": 16,
    "v_div_fixup_f32 v2, v4, v5, v6": 16,
    "v_sqrt_f64 v[2:3], v[4:5]": 32,
    "v_div_fixup_f64 v[2:3], v[4:5], v[6:7], v[4:5]": 32,
}
FEW, MORE = 32, 96


def kernel(index: int, count: int) -> Kernel:
    """`count` of one instruction, on registers that hold numbers."""
    numbers = "\n".join(f"v_mov_b32 v{register}, 1.0" for register in range(2, 8))
    return Kernel(f"rate{index}_{count}", numbers + f"\n{list(RATES)[index]}" * count)


@pytest.fixture(scope="module")
def module() -> Module:
    code = assemble([kernel(index, count) for index in range(len(RATES)) for count in (FEW, MORE)])
    return Module(simulator(), code)


@pytest.mark.parametrize("instruction", RATES)
def test_an_instruction_takes_its_clocks(module: Module, instruction: str) -> None:
    index = list(RATES).index(instruction)
    few, more = (
        json.loads(simulator().launch_timed(module.function(f"rate{index}_{count}"), bytes(24)))["clocks"]
        for count in (FEW, MORE)
    )
    assert more - few == RATES[instruction] * (MORE - FEW)
