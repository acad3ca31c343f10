"""The selection rule of the forward on made-up clocks."""

import re

import pytest

from tests.scripts.tunelib.kit import tile, timed
from tunelib.fwd_choose import choose_rows
from tunelib.trial import Trial, Verdict

# The same work a clock; the small tile fills a card with a quarter of the work, the slow one never wins.
_LARGE = timed(tile(block_m=128), step=1000)
_SMALL = timed(tile(block_m=32), step=275)
_SLOW = timed(tile(block_m=64), step=900)
_WRONG = Trial(tile(block_m=128, kv="in_turns"), Verdict.WRONG, "cosine 0.9")


def _names(rows):
    return [row.name for row in rows]


def _choose(trials, can_ship=lambda trial: True):
    return choose_rows(trials, 60, can_ship, "simulated")


def test_the_quickest_large_tile_and_what_wins_small_grids():
    rows = _choose([_SLOW, _SMALL, _WRONG, _LARGE])
    assert _names(rows) == [_LARGE.tile.name, _SMALL.tile.name]
    assert rows[0].why == "the quickest with the card full of 3 tiles: 10.00 TFLOPS simulated"
    assert rows[1].why.startswith("small grids: by estimate up to ")
    assert rows[1].clocks == _SMALL.clocks


def test_the_order_of_trials_does_not_matter():
    assert _choose([_LARGE, _SMALL, _SLOW]) == _choose([_SLOW, _SMALL, _LARGE])


def test_a_tile_that_does_not_build_elsewhere_is_passed_over():
    asked = []

    def can_ship(trial):
        asked.append(trial.tile.name)
        return trial is not _LARGE

    assert _names(_choose([_LARGE, _SMALL, _SLOW], can_ship))[0] != _LARGE.tile.name
    assert asked[0] == _LARGE.tile.name


def test_what_a_kernel_that_splits_gains_is_no_other_tiles_gain():
    large, small = timed(tile(block_m=128), step=20000), timed(tile(block_m=32), step=5600)

    def share_of_small(splits):
        _, row = choose_rows([large, small], 60, lambda trial: True, "simulated", splits)
        return int(re.search(r"better in (\d+)% of", row.why)[1])

    # Half of the problems are packed, and not cut.
    packed, both = share_of_small(set()), share_of_small({large.tile.name})
    assert 2 * both - packed < 2 / 3 * packed


def test_other_head_dims_have_one_tile():
    large = timed(tile(head_dim=96, block_m=128), step=1000)
    small = timed(tile(head_dim=96, block_m=32), step=275)
    assert _names(_choose([large, small])) == [large.tile.name]


def test_a_small_gain_is_not_worth_a_kernel():
    twin = timed(tile(block_m=128, block_n=32, p_keys=32), step=499)
    assert len(_choose([_LARGE, twin])) == 1


@pytest.mark.parametrize("access", ["chunks", "elements"])
def test_one_tile_of_each_other_kind(access):
    others = [timed(tile(block_m=m, access=access, scores="modified"), step=m * 10 + 50) for m in (32, 64)]
    assert _names(_choose([_LARGE, *others])) == [_LARGE.tile.name, others[1].tile.name]
