"""A loaded register is used only after the s_waitcnt that covers its load."""

from dataclasses import dataclass

import pytest

from tests.sim.check.bench import fault_of, result_of

LDS_READY = "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"
TWO_LOADS = "global_load_dword v2, v1, s[8:9]\nglobal_load_dword v3, v1, s[8:9] offset:256\n"


@dataclass(frozen=True)
class Early:
    """A kernel whose last instruction comes too early, and the s_waitcnt that it lacks."""

    name: str
    load: str
    use: str
    register: str
    verb: str  # what happens to it
    loader: str
    wait: str  # that is enough, and is what the report asks for
    short: str = ""  # an s_waitcnt that waits for too little


EARLY = [
    Early(
        "vector_load",
        "global_load_dword v2, v1, s[8:9]\n",
        "v_add_u32_e32 v3, v2, v1",
        "v2",
        "read",
        "global_load_dword v2, v1, s[8:9]",
        "vmcnt(0)",
        "s_waitcnt lgkmcnt(0)\n",
    ),
    Early(
        "older_of_two",
        TWO_LOADS,
        "v_mov_b32_e32 v4, v2",
        "v2",
        "read",
        "global_load_dword v2, v1, s[8:9]",
        "vmcnt(1)",
        "s_waitcnt vmcnt(2)\n",
    ),
    Early(
        "younger_of_two",
        TWO_LOADS,
        "v_mov_b32_e32 v4, v3",
        "v3",
        "read",
        "global_load_dword v3, v1, s[8:9] offset:256",
        "vmcnt(0)",
        "s_waitcnt vmcnt(1)\n",
    ),
    Early(
        "store_counts_too",
        "global_load_dword v2, v1, s[8:9]\nglobal_store_dword v1, v0, s[8:9] offset:512\n",
        "v_mov_b32_e32 v4, v2",
        "v2",
        "read",
        "global_load_dword v2, v1, s[8:9]",
        "vmcnt(1)",
    ),
    Early(
        "second_register_of_a_wide_load",
        "v_mov_b32_e32 v6, 0\nglobal_load_dwordx4 v[2:5], v6, s[8:9]\n",
        "v_mov_b32_e32 v7, v5",
        "v5",
        "read",
        "global_load_dwordx4 v[2:5], v6, s[8:9]",
        "vmcnt(0)",
    ),
    Early(
        "overwritten",
        "global_load_dword v2, v1, s[8:9]\n",
        "v_mov_b32_e32 v2, 0",
        "v2",
        "overwritten",
        "global_load_dword v2, v1, s[8:9]",
        "vmcnt(0)",
    ),
    Early(
        "loaded_again_by_lds",
        LDS_READY + "global_load_dword v2, v1, s[8:9]\n",
        "ds_read_b32 v2, v1",
        "v2",
        "overwritten",
        "global_load_dword v2, v1, s[8:9]",
        "vmcnt(0)",
    ),
    Early(
        "atomic_result",
        "global_atomic_add v2, v1, v0, s[8:9] glc\n",
        "v_mov_b32_e32 v3, v2",
        "v2",
        "read",
        "global_atomic_add v2, v1, v0, s[8:9] glc",
        "vmcnt(0)",
    ),
    Early(
        "lds_in_order",
        LDS_READY + "ds_read_b32 v2, v1\nds_read_b32 v3, v1\n",
        "v_mov_b32_e32 v4, v2",
        "v2",
        "read",
        "ds_read_b32 v2, v1",
        "lgkmcnt(1)",
        "s_waitcnt vmcnt(0)\n",
    ),
    Early(
        "permute",
        "ds_bpermute_b32 v2, v1, v0\n",
        "v_mov_b32_e32 v4, v2",
        "v2",
        "read",
        "ds_bpermute_b32 v2, v1, v0",
        "lgkmcnt(0)",
    ),
    Early(
        "scalar_load",
        "s_load_dword s20, s[8:9], 0x0\n",
        "s_add_u32 s21, s20, s20",
        "s20",
        "read",
        "s_load_dword s20, s[8:9], 0x0",
        "lgkmcnt(0)",
        "s_waitcnt vmcnt(0)\n",
    ),
    Early(
        "scalar_loads_return_in_any_order",
        "s_load_dword s20, s[8:9], 0x0\ns_load_dword s21, s[8:9], 0x4\n",
        "s_mov_b32 s22, s20",
        "s20",
        "read",
        "s_load_dword s20, s[8:9], 0x0",
        "lgkmcnt(0)",
        "s_waitcnt lgkmcnt(1)\n",
    ),
    Early(
        "lds_beside_a_scalar_load",
        LDS_READY + "ds_read_b32 v2, v1\ns_load_dword s21, s[8:9], 0x4\n",
        "v_mov_b32_e32 v3, v2",
        "v2",
        "read",
        "ds_read_b32 v2, v1",
        "lgkmcnt(0)",
        "s_waitcnt lgkmcnt(1)\n",
    ),
    Early(
        "scalar_read_by_the_valu",
        "s_load_dword s20, s[8:9], 0x0\n",
        "v_mov_b32_e32 v2, s20",
        "s20",
        "read",
        "s_load_dword s20, s[8:9], 0x0",
        "lgkmcnt(0)",
    ),
    Early(
        "scalar_overwritten",
        "s_load_dwordx2 s[20:21], s[8:9], 0x0\n",
        "s_mov_b32 s21, 0",
        "s21",
        "overwritten",
        "s_load_dwordx2 s[20:21], s[8:9], 0x0",
        "lgkmcnt(0)",
    ),
    Early(
        "flat_needs_both_counters",
        "v_mov_b32_e32 v2, s8\nv_mov_b32_e32 v3, s9\nflat_load_dword v4, v[2:3]\n",
        "v_mov_b32_e32 v5, v4",
        "v4",
        "read",
        "flat_load_dword v4, v[2:3]",
        "vmcnt(0) lgkmcnt(0)",
    ),
    Early(
        "flat_after_one_of_its_counters",
        "v_mov_b32_e32 v2, s8\nv_mov_b32_e32 v3, s9\nflat_load_dword v4, v[2:3]\ns_waitcnt vmcnt(0)\n",
        "v_mov_b32_e32 v5, v4",
        "v4",
        "read",
        "flat_load_dword v4, v[2:3]",
        "lgkmcnt(0)",
    ),
]


@pytest.mark.parametrize("early", EARLY, ids=lambda early: early.name)
def test_use_before_the_wait(early: Early) -> None:
    for wait in ["", early.short] if early.short else [""]:
        report = fault_of(early.name, early.load + wait + early.use)
        assert report.reason == (
            f"{early.register} is {early.verb} while {early.loader} (pc ADDRESS) still loads it; "
            f"expected s_waitcnt {early.wait} in between"
        )
        assert report.instruction == early.use
        assert (report.workgroup, report.wave) == ((0, 0, 0), 0)


@pytest.mark.parametrize("early", EARLY, ids=lambda early: early.name)
def test_use_after_the_wait(early: Early) -> None:
    result_of(early.name, f"{early.load}s_waitcnt {early.wait}\n{early.use}")


@pytest.mark.parametrize(
    ("load", "most"), [("global_load_dword v{}, v1, s[8:9]", 63), ("ds_read_b32 v{}, v1", 15)]
)
def test_the_counter_holds_back_what_it_cannot_count(load: str, most: int) -> None:
    """One load more than the counter can hold starts when the first is back."""
    loads = LDS_READY + "\n".join(load.format(2 + i) for i in range(most))
    use = "\nv_mov_b32_e32 v80, v2"
    assert fault_of("full_counter", loads + use).reason.startswith("v2 is read while")
    result_of("passed_counter", loads + "\n" + load.format(2 + most) + use)


@pytest.mark.parametrize(
    "body",
    [
        # gfx9 reads the data of a store before the next instruction; there is no expcnt to wait for.
        "global_store_dword v1, v0, s[8:9]\nv_mov_b32_e32 v0, 0",
        "ds_write_b32 v1, v0\nv_mov_b32_e32 v0, 0",
        # The younger load of the same kind arrives last.
        "global_load_dword v2, v1, s[8:9]\nglobal_load_dword v2, v1, s[8:9] offset:256",
        # So it does after a FLAT load that is known not to be in LDS any more.
        "v_mov_b32_e32 v2, s8\nv_mov_b32_e32 v3, s9\nflat_load_dword v4, v[2:3]\ns_waitcnt lgkmcnt(0)\n"
        "global_load_dword v4, v1, s[8:9]",
        # Lanes without a load keep their value, but the register waits as a whole.
        "v_mov_b32_e32 v2, 0\ns_mov_b64 exec, 1\nglobal_load_dword v2, v1, s[8:9]\ns_waitcnt vmcnt(0)\n"
        "s_mov_b64 exec, -1\nglobal_store_dword v1, v2, s[8:9]",
    ],
    ids=["store_data", "lds_store_data", "same_register_again", "after_flat", "some_lanes"],
)
def test_what_needs_no_wait(body: str) -> None:
    result_of("no_wait", body)
