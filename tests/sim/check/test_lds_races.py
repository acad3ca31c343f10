"""Waves of a workgroup touch the same bytes of LDS only with a barrier in between."""

from dataclasses import dataclass

import pytest

from tests.sim.check.bench import Report, Shape, fault_of, result_of

TWO_WAVES = Shape(waves=2)
# v2 is the byte offset of the lane in its wave, so that lanes of both waves meet; v3 is not the same
# in both.
OFFSETS = "v_and_b32_e32 v2, 63, v0\nv_lshlrev_b32_e32 v2, 2, v2\nv_mov_b32_e32 v3, v0\n"
BARRIER = "s_waitcnt lgkmcnt(0)\ns_barrier\n"
IS_WAVE_0 = "v_readfirstlane_b32 s12, v0\ns_cmp_eq_u32 s12, 0\n"


@dataclass(frozen=True)
class Race:
    """Two parts of a kernel that race, and run after a barrier between them."""

    name: str
    first: str
    second: str  # is refused
    does: str
    did: str


def _first(body: str) -> str:
    """For wave 0 only."""
    return IS_WAVE_0 + f"s_cbranch_scc0 first\n{body}\nfirst:\n"


def _second(body: str) -> str:
    """For wave 1 only."""
    return IS_WAVE_0 + f"s_cbranch_scc1 second\n{body}\nsecond:"


RACES = [
    Race("write_write", "ds_write_b32 v2, v3", "ds_write_b32 v2, v3", "writes 4 bytes", "written"),
    Race("read_after_write", "ds_write_b32 v2, v3", "ds_read_b32 v4, v2", "reads 4 bytes", "written"),
    Race("write_after_read", "ds_read_b32 v4, v2", "ds_write_b32 v2, v3", "writes 4 bytes", "read"),
    Race(
        "atomic_after_write",
        "ds_write_b32 v2, v3",
        "ds_add_u32 v2, v3",
        "updates atomically 4 bytes",
        "written",
    ),
    Race(
        "write_after_atomic",
        "ds_add_u32 v2, v3",
        "ds_write_b32 v2, v3",
        "writes 4 bytes",
        "atomically updated",
    ),
    Race(
        "exchange_after_write",
        "ds_write_b32 v2, v3",
        "ds_wrxchg_rtn_b32 v4, v2, v3",
        "updates atomically 4 bytes",
        "written",
    ),
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_race(race: Race) -> None:
    body = OFFSETS + _first(race.first) + _second(race.second)
    report = fault_of(race.name, body, TWO_WAVES)
    reason = (
        f"LDS race: wave 1 {race.does} at LDS address 0, of which wave 0 has {race.did} byte 0 since the "
        "last barrier; expected an s_barrier in between"
    )
    assert report == Report(reason, race.name, race.second, (0, 0, 0), 1, 0, 0)


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_barrier_between(race: Race) -> None:
    result_of(race.name, OFFSETS + _first(race.first) + BARRIER + _second(race.second), TWO_WAVES)


def test_one_byte_of_a_wide_access() -> None:
    """Wave 0 writes byte 5; wave 1 reads 16 bytes from 0."""
    write = "v_mov_b32_e32 v4, 5\nds_write_b8 v4, v3"
    read = "v_mov_b32_e32 v8, 0\nds_read_b128 v[4:7], v8"
    report = fault_of("one_byte", OFFSETS + _first(write) + _second(read), TWO_WAVES)
    assert "reads 16 bytes at LDS address 0, of which wave 0 has written byte 0x5" in report.reason
    assert (report.instruction, report.wave, report.lane, report.address) == (
        "ds_read_b128 v[4:7], v8",
        1,
        0,
        5,
    )


@pytest.mark.parametrize("width", ["b8", "b16", "b32", "b64", "b128"])
def test_every_width_is_tracked(width: str) -> None:
    """Both waves write lane 3's bytes; only lane 3 is on."""
    data = {"b64": "v[6:7]", "b128": "v[6:9]"}.get(width, "v6")
    address = "v_lshlrev_b32_e32 v2, 2, v2\n"
    values = "".join(f"v_mov_b32_e32 v{r}, v0\n" for r in range(6, 10))
    write = f"ds_write_{width} v2, {data}"
    body = OFFSETS + address + values + "s_mov_b64 exec, 8\n" + write
    report = fault_of(f"width_{width}", body, TWO_WAVES)
    assert (report.instruction, report.wave, report.lane, report.address) == (write, 1, 3, 48)


def test_flat_access_to_lds_is_tracked() -> None:
    flat = "v_mov_b32_e32 v5, 0x10000\nflat_store_dword v[4:5], v3"
    body = OFFSETS + "v_mov_b32_e32 v4, v2\n" + flat
    report = fault_of("flat_store", body, TWO_WAVES)
    assert "LDS race: wave 1 writes 4 bytes at LDS address 0, of which wave 0 has written" in report.reason
    assert report.instruction == "flat_store_dword v[4:5], v3"


@pytest.mark.parametrize(
    "body",
    [
        # Each wave has its own half.
        "ds_write_b32 v1, v3\nds_read_b32 v4, v1",
        # Bytes of one dword that belong to different waves.
        "v_lshrrev_b32_e32 v4, 6, v0\nv_add_u32_e32 v4, v4, v2\nds_write_b8 v4, v3",
        # Both store the same.
        "v_mov_b32_e32 v3, 7\nds_write_b32 v2, v3\nds_read_b32 v4, v2",
        # Atomics do not race with each other; the loop of an atomic without an opcode begins with a load.
        "v_mov_b32_e32 v3, 1\nds_add_u32 v2, v3\nds_read_b32 v4, v2\nds_add_u32 v2, v3",
        # Both read.
        "ds_read_b32 v4, v2",
    ],
    ids=["apart", "neighbouring_bytes", "same_value", "atomics", "reads"],
)
def test_no_race(body: str) -> None:
    result_of("no_race", OFFSETS + body, TWO_WAVES)
