"""Barriers: all waves of a workgroup at the same one, or ended."""

import pytest

from tests.kit.hip import HipError
from tests.sim.check.bench import Shape, fault_of, result_of

TWO_WAVES = Shape(waves=2)
BRANCH = "v_readfirstlane_b32 s12, v0\ns_cmp_lg_u32 s12, 0\ns_cbranch_scc1 other\n"
DIVERGENT = BRANCH + "s_barrier\ns_branch done\nother:\ns_barrier\ndone:"


def test_waves_at_different_barriers() -> None:
    report = fault_of("divergent", DIVERGENT, TWO_WAVES)
    assert report.reason == (
        "divergent barrier: this wave waits at an s_barrier while wave 0 waits at another one (pc ADDRESS); "
        "expected all waves of the workgroup at the same s_barrier, or ended"
    )
    assert (report.instruction, report.workgroup, report.wave) == ("s_barrier", (0, 0, 0), 1)


@pytest.mark.parametrize(
    "body",
    [
        BRANCH + "other:\ns_barrier",
        # A wave that has ended counts as arrived.
        BRANCH + "s_barrier\nother:",
        # A wave arrives with whatever lanes are on.
        "s_mov_b64 exec, 1\ns_barrier",
        "s_mov_b64 exec, 0\ns_barrier",
    ],
    ids=["same", "ended", "one_lane", "no_lane"],
)
def test_allowed(body: str) -> None:
    result_of("barrier", body, TWO_WAVES)


def test_barrier_that_never_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wave 1 spins on a value that wave 0 would store behind the barrier."""
    monkeypatch.setenv("FLASHATTN_SIM_WATCHDOG", "100000")
    body = BRANCH + (
        "s_barrier\nv_mov_b32_e32 v2, 1\nglobal_store_dword v1, v2, s[8:9]\ns_branch done\n"
        "other:\ns_load_dword s13, s[8:9], 0x0\ns_waitcnt lgkmcnt(0)\ns_cmp_eq_u32 s13, 0\n"
        "s_cbranch_scc1 other\ns_barrier\ndone:"
    )
    report = fault_of("stuck", body, TWO_WAVES)
    assert report.reason == (
        "wave 1 has executed more than 100000 instructions: an endless loop, or one that waits for what "
        "never comes (FLASHATTN_SIM_WATCHDOG sets the limit); wave 0 waits at a barrier that so never "
        "completes (pc ADDRESS)"
    )
    assert (report.workgroup, report.wave) == ((0, 0, 0), 1)


def test_checks_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHATTN_SIM_CHECK", "off")
    result_of("divergent", DIVERGENT, TWO_WAVES)


def test_unknown_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHATTN_SIM_CHECK", "maybe")
    with pytest.raises(HipError, match="FLASHATTN_SIM_CHECK=maybe, allowed: on, off"):
        result_of("level", "")
