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


def _choose(trials, fit=lambda tile, element: 1, shipped=()):
    return choose_rows(trials, fit, "simulated", shipped)


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
    assert second.why == "the best for bf16, number 3 of 3 tiles: 5.00 TFLOPS simulated"


@pytest.mark.parametrize(("rate", "stays"), [(19.65, True), (19.55, False)])
def test_a_row_gives_way_to_more_than_a_tie(rate, stays):
    (row,) = _choose([timed_bwd(_NEXT.tile, 20.0)])
    new = timed_bwd(_QUICK.tile, 20.0)
    (chosen,) = _choose([new, timed_bwd(_NEXT.tile, rate)], shipped=[row])
    assert chosen.name == (row.name if stays else new.tile.name)


def test_a_row_of_another_element_has_no_right_to_stay():
    (row,) = _choose([_NEXT])
    row = row.model_copy(update={"for_elements": ("f16",)})
    both = [timed_bwd(_QUICK.tile, 20.0), timed_bwd(_NEXT.tile, 19.9)]
    chosen = {element: row.name for row in _choose(both, shipped=[row]) for element in row.elements}
    assert chosen == {"f16": _NEXT.tile.name, "bf16": _QUICK.tile.name}


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
