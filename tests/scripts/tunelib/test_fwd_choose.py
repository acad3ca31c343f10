"""The selection rule of the forward on made-up clocks."""

import re
from itertools import product

import pytest

from tests.scripts.tunelib.kit import tile, timed
from tunelib.fwd_choose import OutOfTimeError, choose_rows, row_of
from tunelib.trial import Trial, Verdict

# The same work a clock; the small tile fills a card with a quarter of the work, the slow one never wins.
_LARGE = timed(tile(block_m=128), step=1000)
_SMALL = timed(tile(block_m=32), step=275)
_SLOW = timed(tile(block_m=64), step=900)
_WRONG = Trial(tile(block_m=128, kv="in_turns"), Verdict.WRONG, "cosine 0.9")


def _rows_of(trials, **keys):
    return [row_of(trial, "shipped").model_copy(update=keys) for trial in trials]


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
        _, row = choose_rows(
            [large, small], 60, lambda trial: True, "simulated", _rows_of(splits, split=True)
        )
        return int(re.search(r"better in (\d+)% of", row.why)[1])

    # Half of the problems are packed, and not cut.
    packed, both = share_of_small([]), share_of_small([large])
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


# By estimate the first is the better by 0.5 % for small grids.
_TWINS = [timed(tile(block_m=32), step=275), timed(tile(block_m=32, kv="in_turns"), step=276, fixed=1005)]


class _Launches:
    """Of tiles that take other clocks than their estimates."""

    def __init__(self, slow=(), limit=10**6, slow_clocks=2e5) -> None:
        self.slow, self.left, self.slow_clocks = slow, limit, slow_clocks
        self.asked, self.means = set(), {}

    def clocks(self, kernel, shape):
        self.left -= 1
        if self.left < 0:
            raise OutOfTimeError
        self.asked.add((kernel.name, shape.heads, shape.seqlen_q, shape.causal))
        return self.slow_clocks if kernel.tile.name in self.slow else 1e5

    def compared(self, tiles, clocks):
        self.means[frozenset(tiles)] = clocks


def _small_tile(launches, can_ship=lambda trial: True, shipped=()):
    _, row = choose_rows([_LARGE, *_TWINS], 60, can_ship, "simulated", _rows_of(shipped), launches)
    return row.name


def test_launches_tell_sets_apart_that_tie_by_estimate():
    better, worse = (trial.tile.name for trial in _TWINS)
    assert _small_tile(None) == better
    launches = _Launches(slow=[better])
    assert _small_tile(launches) == worse
    assert set(launches.means) == {frozenset({_LARGE.tile.name, name}) for name in (better, worse)}
    assert _small_tile(_Launches(slow=[worse])) == better


def test_what_ships_stays_unless_launches_find_more_than_a_tie():
    better, worse = (trial.tile.name for trial in _TWINS)
    for slow_clocks, expected in ((1.018e5, better), (1.1e5, worse)):
        launches = _Launches(slow=[better], slow_clocks=slow_clocks)
        assert _small_tile(launches, shipped=[_LARGE, _TWINS[0]]) == expected
    assert _small_tile(_Launches(slow=[better], slow_clocks=1.018e5)) == worse


def test_the_launches_are_of_small_grids_with_a_mask_and_without():
    launches = _Launches()
    _small_tile(launches)
    shapes = {(heads, seqlen, causal) for _, heads, seqlen, causal in launches.asked}
    assert len(shapes) == 12
    assert {seqlen for _, seqlen, causal in shapes if causal} == {s for _, s, causal in shapes if not causal}
    assert {heads for heads, *_ in shapes} == {8, 16, 32}


def test_a_mean_counts_dense_and_packed_sequences():
    """The kernel that splits is slow here, and serves none that is packed."""
    shipped = _rows_of(_TWINS, split=True)
    launches = _Launches()
    launches.clocks = lambda kernel, shape: 4e5 if kernel.split else 1e5
    choose_rows([_LARGE, *_TWINS], 60, lambda trial: True, "simulated", shipped, launches)
    assert launches.means
    assert all(1e5 < clocks <= 2e5 * 1.001 for clocks in launches.means.values())


def test_nothing_is_launched_where_estimates_are_clear():
    launches = _Launches()
    choose_rows([_LARGE, _SMALL, _SLOW], 60, lambda trial: True, "simulated", (), launches)
    assert not launches.asked


def test_the_estimate_stands_when_the_time_is_over():
    better, _ = (trial.tile.name for trial in _TWINS)
    launches = _Launches(slow=[better], limit=30)
    assert _small_tile(launches) == better
    assert launches.left < 0


def test_what_launches_prefer_must_build_elsewhere():
    policies = product(("apart", "in_turns"), ("lazy", "always"))
    twins = [
        timed(tile(block_m=32, kv=kv, rescale=rescale), step=2750 + i)
        for i, (kv, rescale) in enumerate(policies)
    ]
    first, second, third, fourth = (trial.tile.name for trial in twins)
    launches = _Launches(slow=[first, second])
    trials = [timed(tile(block_m=128), step=10000), *twins]
    _, row = choose_rows(trials, 60, lambda t: t.tile.name != third, "simulated", (), launches)
    assert row.name == fourth


def test_few_sets_are_compared():
    policies = product((32, 64), ("apart", "in_turns"), ("lazy", "always"), ("streamed", "on_demand"))
    keys = [dict(zip(("p_keys", "kv", "rescale", "operands"), each, strict=True)) for each in policies]
    many = [timed(tile(block_m=32, **each), step=20000 + i) for i, each in enumerate(keys)]
    launches = _Launches()
    choose_rows(
        [timed(tile(block_m=128), step=73000), *many], 60, lambda trial: True, "simulated", (), launches
    )
    assert len(launches.means) == 8 < len(many)


def test_fp32_is_chosen_by_estimate():
    trials = [
        timed(t.tile.model_copy(update={"numbers": "f32"}), step=t.clocks.step) for t in (_LARGE, *_TWINS)
    ]
    launches = _Launches()
    assert len(choose_rows(trials, 60, lambda trial: True, "simulated", (), launches)) == 2
    assert not launches.asked
