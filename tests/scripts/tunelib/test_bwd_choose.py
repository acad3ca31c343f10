"""The selection rule of the backward on made-up rates."""

import pytest

from buildlib.tile_config import BwdTile
from tests.scripts.tunelib.kit import bwd_tile, timed_bwd
from tunelib.bwd_choose import choose_rows
from tunelib.trial import Trial, Verdict

_QUICK = timed_bwd(bwd_tile(block_m=128), 20.0)
_NEXT = timed_bwd(bwd_tile(block_m=96), 15.0)
_SLOW = timed_bwd(bwd_tile(block_m=32), 5.0)
_WRONG = Trial(bwd_tile(block_m=192), Verdict.WRONG, "dv is off by 1")


def _choose(trials, fit=lambda tile, element: 1):
    return choose_rows(trials, fit, "simulated")


@pytest.mark.parametrize("trials", [[_QUICK, _NEXT, _SLOW, _WRONG], [_WRONG, _SLOW, _NEXT, _QUICK]])
def test_the_quickest_serves_all_elements(trials):
    (row,) = _choose(trials)
    assert isinstance(row, BwdTile)
    assert (row.name, row.elements) == (_QUICK.tile.name, ("f16", "bf16"))
    assert row.why == "the quickest of 3 tiles: 20.00 TFLOPS simulated"


def test_an_element_that_does_not_build_has_a_row_of_its_own():
    def fit(tile, element):
        if element == "bf16":
            return 0 if tile.block_m > 32 else 2
        return 1

    first, second = _choose([_SLOW, _QUICK, _NEXT], fit)
    assert (first.name, first.elements, first.workgroups_per_cu) == (_QUICK.tile.name, ("f16",), 1)
    assert (second.name, second.elements, second.workgroups_per_cu) == (_SLOW.tile.name, ("bf16",), 2)
    assert second.why == "the quickest that builds, number 3 of 3 tiles: 5.00 TFLOPS simulated"


def test_nothing_that_builds_is_no_row():
    assert _choose([_QUICK], lambda tile, element: 0) == []


def test_each_kind_has_a_row():
    others = [
        timed_bwd(bwd_tile(**keys), 1.0)
        for keys in (
            {"gradient": "dq"},
            {"head_dim": 96},
            {"scores": "modified"},
            {"access": "elements", "scores": "modified"},
            {"numbers": "f32"},
        )
    ]
    rows = _choose([_QUICK, *others])
    assert [row.name for row in rows] == [
        trial.tile.name for trial in (others[0], _QUICK, others[1], others[2], others[3], others[4])
    ]
