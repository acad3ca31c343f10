"""Workgroups of a launch touch the same bytes of global memory only by atomics, or after an acquire."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.sim.check.bench import Report, Shape, fault_of, result_of

TWO_GROUPS = Shape(groups=2)
VALUE = "v_mov_b32_e32 v3, s6\n"  # differs between the workgroups
STORE, LOAD, ATOMIC = (
    "global_store_dword v1, v3, s[8:9] offset:64",
    "global_load_dword v4, v1, s[8:9] offset:64",
    "global_atomic_add v1, v3, s[8:9] offset:64",
)


@pytest.fixture(autouse=True)
def _one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workgroup 0 goes first, so that 1 is the one that is refused."""
    monkeypatch.setenv("FLASHATTN_SIM_THREADS", "1")


@dataclass(frozen=True)
class Race:
    """What workgroup 0 does, and then workgroup 1."""

    name: str
    first: str
    second: str
    does: str
    did: str
    lane: int = 0

    def body(self, between: str = "") -> str:
        return (
            f"{VALUE}s_cmp_lg_u32 s6, 0\ns_cbranch_scc1 other\n{self.first}\ns_branch done\n"
            f"other:\n{between}{self.second}\ndone:"
        )


RACES = [
    Race("write_write", STORE, STORE, "writes", "wrote"),
    Race("read_after_write", STORE, LOAD, "reads", "wrote"),
    Race("scalar_read_after_write", STORE, "s_load_dword s20, s[8:9], 0x40", "reads", "wrote", -1),
    Race("write_after_read", LOAD, STORE, "writes", "read"),
    Race("atomic_after_write", STORE, ATOMIC, "updates atomically", "wrote"),
    Race("write_after_atomic", ATOMIC, STORE, "writes", "updated atomically"),
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_race(race: Race) -> None:
    report = fault_of(race.name, race.body(), TWO_GROUPS)
    reason = (
        f"race between workgroups: this one {race.does} ADDRESS, which workgroup (0, 0, 0) {race.did} in the "
        "same launch; expected atomics on it, or an acquire (returning atomic or fence) before"
    )
    assert report == Report(reason, race.name, race.second, (1, 0, 0), 0, race.lane, 64)


@pytest.mark.parametrize(
    "acquire", ["buffer_wbinvl1_vol", "global_atomic_add v5, v1, v3, s[8:9] offset:512 glc"]
)
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_after_an_acquire(race: Race, acquire: str) -> None:
    """Who has acquired may have waited for the other."""
    result_of(race.name, race.body(f"{acquire}\ns_waitcnt vmcnt(0)\n"), TWO_GROUPS)


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_found_by_many_workers_too(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHATTN_SIM_THREADS", "2")
    assert "race between workgroups" in fault_of(race.name, race.body(), TWO_GROUPS).reason


def test_one_byte_in_common() -> None:
    """Workgroup 0 stores bytes 0 to 3, workgroup 1 bytes 3 and 4, of lane 5 only."""
    byte = "v_mov_b32_e32 v2, 3\n" + "global_store_byte v2, v3, s[8:9]"
    body = Race("byte", "v_mov_b32_e32 v2, 0\nglobal_store_dword v2, v3, s[8:9]", byte, "", "").body()
    report = fault_of("one_byte", "s_mov_b64 exec, 32\n" + body, TWO_GROUPS)
    assert (report.instruction, report.lane, report.address) == ("global_store_byte v2, v3, s[8:9]", 5, 3)


@pytest.mark.parametrize(
    "body",
    [
        # Bytes of the same dwords.
        VALUE + "v_add_u32_e32 v2, s6, v1\nglobal_store_byte v2, v3, s[8:9]",
        # Both store the same, and read it back.
        "v_mov_b32_e32 v3, 7\n" + STORE + "\n" + LOAD,
        # A plain load before the compare-and-swap of an atomic that has no opcode.
        VALUE + LOAD + "\n" + ATOMIC,
        # An atomic load.
        f"{VALUE}s_cmp_lg_u32 s6, 0\ns_cbranch_scc1 other\n{STORE}\ns_branch done\nother:\n{LOAD} glc\ndone:",
        # Both read.
        LOAD,
        # Rewritten and read by its owner.
        "s_lshl_b32 s12, s6, 8\nv_add_u32_e32 v1, s12, v1\n" + f"{VALUE}{STORE}\n{LOAD}\n{STORE}",
    ],
    ids=["neighbouring_bytes", "same_value", "atomics", "atomic_load", "reads", "own"],
)
def test_no_race(body: str) -> None:
    result_of("no_race", body, TWO_GROUPS)


def test_launches_are_ordered() -> None:
    """Two launches may write the same, whichever workgroups do."""
    one = result_of("launch", "v_mov_b32_e32 v3, s6\n" + STORE)
    two = result_of("launch", "v_mov_b32_e32 v3, 9\n" + STORE)
    assert np.all(one[16:80] == 0)
    assert np.all(two[16:80] == 9)
