"""What more than one wave shows: initial registers, partial waves, barriers, ended waves."""

import itertools
import struct

import numpy as np
from numpy.typing import NDArray

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Buffer, Dim3, Module, simulator

POISON = 0xEE


def launch(kernel: Kernel, words: int, grid: Dim3, block: Dim3) -> NDArray[np.uint32]:
    """Runs `kernel` with a buffer of `words` poisoned dwords as its argument and returns them."""
    hip = simulator()
    module = Module(hip, assemble([kernel]))
    with Buffer(hip, 4 * words) as out:
        out.write(bytes([POISON]) * (4 * words))
        hip.launch(
            module.function(kernel.name), struct.pack("<QQQ", out.address, 0, 0), grid=grid, block=block
        )
        result = out.read().view(np.uint32)
    module.unload()
    return result


# v10 = ((z * 2 + y) * 3 + x) of the workgroup, v11 = ((z * 3 + y) * 7 + x) of the work-item:
# each work-item stores 16 bytes at 16 * (42 * v10 + v11).
IDENTITY = """s_load_dwordx2 s[10:11], s[4:5], 0x0
    s_mul_i32 s12, s8, 2
    s_add_u32 s12, s12, s7
    s_mul_i32 s12, s12, 3
    s_add_u32 s12, s12, s6
    s_mul_i32 s12, s12, 42
    v_mul_u32_u24_e32 v11, 3, v2
    v_add_u32_e32 v11, v11, v1
    v_mul_u32_u24_e32 v11, 7, v11
    v_add3_u32 v11, v11, v0, s12
    v_lshlrev_b32_e32 v11, 4, v11
    s_bcnt1_i32_b64 s13, exec
    v_lshl_or_b32 v4, v1, 8, v0
    v_lshl_or_b32 v4, v2, 16, v4
    s_lshl_b32 s14, s7, 8
    s_or_b32 s14, s14, s6
    s_lshl_b32 s15, s8, 16
    s_or_b32 s14, s14, s15
    v_mov_b32_e32 v5, s14
    v_mov_b32_e32 v6, s13
    v_mbcnt_lo_u32_b32 v7, -1, 0
    v_mbcnt_hi_u32_b32 v7, -1, v7
    s_waitcnt lgkmcnt(0)
    global_store_dwordx4 v11, v[4:7], s[10:11]"""


def test_ids_and_partial_waves() -> None:
    """42 work-items of 7 x 3 x 2 in 3 x 2 x 2 workgroups: one wave of 42 lanes each."""
    kernel = Kernel("identity", IDENTITY, max_threads=64, three_dimensions=True)
    rows = launch(kernel, 4 * 42 * 12, (3, 2, 2), (7, 3, 2)).reshape(12, 42, 4)
    for group, (gz, gy, gx) in enumerate(itertools.product(range(2), range(2), range(3))):
        for item, (z, y, x) in enumerate(itertools.product(range(2), range(3), range(7))):
            expected = [x | y << 8 | z << 16, gx | gy << 8 | gz << 16, 42, item]
            assert rows[group, item].tolist() == expected


def test_last_wave_has_only_its_lanes() -> None:
    body = """s_load_dwordx2 s[10:11], s[4:5], 0x0
        s_bcnt1_i32_b64 s13, exec
        v_mov_b32_e32 v1, s13
        v_lshlrev_b32_e32 v2, 2, v0
        s_waitcnt lgkmcnt(0)
        global_store_dword v2, v1, s[10:11]"""
    lanes = launch(Kernel("partial", body, max_threads=256), 256, (1, 1, 1), (150, 1, 1))
    poison = int.from_bytes(bytes([POISON]) * 4, "little")
    assert lanes.tolist() == [64] * 128 + [22] * 22 + [poison] * 106


def test_barrier_orders_lds_between_waves() -> None:
    """Four waves pass a value around a ring of 256 lanes three times; every step needs a barrier."""
    step = """ds_write_b32 v2, v1
        s_waitcnt lgkmcnt(0)
        s_barrier
        ds_read_b32 v1, v3
        s_waitcnt lgkmcnt(0)
        s_barrier
        """
    body = f"""s_load_dwordx2 s[10:11], s[4:5], 0x0
        v_mov_b32_e32 v1, v0
        v_lshlrev_b32_e32 v2, 2, v0
        v_add_u32_e32 v3, 70, v0
        v_and_b32_e32 v3, 0xff, v3
        v_lshlrev_b32_e32 v3, 2, v3
        {step * 3}
        s_waitcnt lgkmcnt(0)
        global_store_dword v2, v1, s[10:11]"""
    lanes = launch(Kernel("ring", body, lds_bytes=1024, max_threads=256), 256, (1, 1, 1), (256, 1, 1))
    assert lanes.tolist() == [(lane + 3 * 70) % 256 for lane in range(256)]


def test_an_ended_wave_counts_as_arrived() -> None:
    """Wave 1 of 3 ends at once; the others meet at the barrier without it."""
    body = """s_load_dwordx2 s[10:11], s[4:5], 0x0
        v_lshlrev_b32_e32 v2, 2, v0
        v_readfirstlane_b32 s12, v0
        s_cmp_eq_u32 s12, 64
        s_cbranch_scc1 ended
        v_xor_b32_e32 v3, 0x200, v2
        ds_write_b32 v2, v0
        s_waitcnt lgkmcnt(0)
        s_barrier
        ds_read_b32 v1, v3
        s_waitcnt lgkmcnt(0)
        global_store_dword v2, v1, s[10:11]
        ended:"""
    lanes = launch(Kernel("early_end", body, lds_bytes=1024, max_threads=192), 192, (1, 1, 1), (192, 1, 1))
    poison = int.from_bytes(bytes([POISON]) * 4, "little")
    assert lanes[:64].tolist() == list(range(128, 192))
    assert lanes[64:128].tolist() == [poison] * 64
    assert lanes[128:].tolist() == list(range(64))
