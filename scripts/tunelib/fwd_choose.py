"""The selection rule of the forward: which of the timed tiles become rows.

For each head dim:

1. of the tiles with plain scores and rows of chunks the one that is quickest on a large problem;
2. then, for usual head dims, the tiles that together shorten the dispatcher's estimate most over a set of
   problems, small grids and packed sequences among them, as many as are worth a kernel each; tiles that also
   split keys are weighed with both of their kernels, but for packed sequences;
3. the quickest tile that changes scores, and the quickest that moves single elements, where there are rows of
   such kinds.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import flashattn_rocm._C as _C
from buildlib.tile_config import FwdTile
from tunelib.compiler import tuned_kernel
from tunelib.trial import Trial, Verdict

# Of plain scores: each is two kernels for every arch in the wheel, so models' most usual head dims alone have
# tiles for small grids.
_MOST_ROWS = {32: 4, 64: 3, 128: 3}
_LEAST_GAIN = 0.015  # of the geometric mean of all problems
# heads, sequence length, causal, packed: then query blocks are not cut along the keys
_PROBLEMS = tuple(
    product(*((4, 8, 16, 32, 64), (128, 256, 512, 1024, 2048, 4096)), (False, True), (False, True))
)
_LARGE = (64, 4096, False, False)
_ACCESS_AND_SCORES = (("chunks", "plain"), ("chunks", "modified"), ("elements", "modified"))

Problem = tuple[int, int, bool, bool]
Estimates = dict[str, float]  # clocks by kernel


def choose_rows(
    trials: Iterable[Trial],
    compute_units: int,
    can_ship: Callable[[Trial], bool],
    where: str,
    splits: Collection[str] = (),
) -> list[FwdTile]:
    """The rows for the head dims of the trials.

    Args:
        trials: all that are known.
        compute_units: of the card.
        can_ship: whether a tile that was chosen also builds for the other archs of the configuration; the
            next best is taken where not.
        where: "simulated" or the card's name, for the reasons.
        splits: names of the tiles that also have a kernel which cuts query blocks along the keys; what it
            gains is no other tile's gain.
    """
    timed = [trial for trial in trials if trial.verdict == Verdict.TIMED]
    rows = []
    for head_dim in sorted({trial.tile.head_dim for trial in timed}, reverse=True):
        for numbers, (access, scores) in product(("16bit", "f32"), _ACCESS_AND_SCORES):
            kind = (access, scores, numbers)
            some = [t for t in timed if t.tile.head_dim == head_dim and t.tile.kind == kind]
            if some:
                estimates = {p: _estimate(some, p, compute_units, splits) for p in _PROBLEMS}
                rows += _choose(some, estimates, can_ship, where)
    return rows


def row_of(trial: Trial, why: str) -> FwdTile:
    """A trial, which must be timed, as a row of a configuration."""
    assert trial.clocks is not None
    return FwdTile(
        **trial.tile.model_dump(), workgroups_per_cu=trial.workgroups_per_cu, clocks=trial.clocks, why=why
    )


def _choose(
    trials: Sequence[Trial],
    estimates: dict[Problem, Estimates],
    can_ship: Callable[[Trial], bool],
    where: str,
) -> list[FwdTile]:
    by_name = {trial.tile.name: trial for trial in trials}
    plain = trials[0].tile.scores == "plain"

    first = _first_that(can_ship, sorted(by_name.values(), key=lambda t: estimates[_LARGE][t.tile.name]))
    if first is None:
        return []
    text = f"the quickest with the card full of {len(trials)} tiles: {first.tflops:.2f} TFLOPS {where}"
    rows = [row_of(first, text)]
    most = _MOST_ROWS.get(trials[0].tile.head_dim, 1) if plain else 1
    small = _small_tiles(estimates, first.tile.name, most, lambda name: can_ship(by_name[name]))
    for place, name in enumerate(small):
        others = {first.tile.name, *small[:place]}
        rows.append(row_of(by_name[name], _why_small(estimates, others, name)))
    return rows


def _small_tiles(
    estimates: dict[Problem, Estimates], first: str, most: int, can_ship: Callable[[str], bool]
) -> list[str]:
    """The tiles beside the first that together shorten all problems most, the one that does most first.

    Not one after the other: at head_dim 32 the best single one, 48x64 in turns, is not in the best three.
    """
    can_ship = cache(can_ship)
    names = sorted(next(iter(estimates.values())).keys() - {first})
    chosen: tuple[str, ...] = ()
    for count in range(1, most):
        sets = sorted(combinations(names, count), key=lambda some: _mean_log(estimates, {first, *some}))
        found = next((some for some in sets if all(map(can_ship, some))), None)
        if found is None:
            break
        gain = _mean_log(estimates, {first, *chosen}) - _mean_log(estimates, {first, *found})
        if gain <= math.log(1 + _LEAST_GAIN):
            break
        chosen = found
    order: list[str] = []
    while len(order) < len(chosen):
        left = sorted(set(chosen) - set(order))
        order.append(min(left, key=lambda name: _mean_log(estimates, {first, *order, name})))
    return order


def _mean_log(estimates: dict[Problem, Estimates], names: Collection[str]) -> float:
    """Of the clocks of all problems, each by the quickest of the tiles."""
    return sum(math.log(min(clocks[name] for name in names)) for clocks in estimates.values()) / len(
        estimates
    )


def _first_that(can_ship: Callable[[Trial], bool], trials: Sequence[Trial]) -> Trial | None:
    return next((trial for trial in trials if can_ship(trial)), None)


def _estimate(
    trials: Sequence[Trial], problem: Problem, compute_units: int, splits: Collection[str]
) -> Estimates:
    heads, seqlen, causal, packed = problem
    tile = trials[0].tile
    rows = [_dispatch_row(trial) for trial in trials]
    rows += [{**row, "split": True} for row in rows if row["name"] in splits]
    ranking = _C.rank_fwd(
        *(1, seqlen, seqlen, heads, heads, tile.head_dim, causal),
        element=tile.elements[0],
        chunks=tile.access == "chunks",
        changes_scores=tile.scores == "modified",
        packed=packed,
        compute_units=compute_units,
        rows=rows,
    )
    # Best first, so the quicker kernel of a tile that has two is met last.
    return {row["name"]: row["estimated_clocks"] for row in reversed(ranking)}


def _dispatch_row(trial: Trial) -> dict[str, Any]:
    """The trial as the dispatcher weighs it."""
    assert trial.clocks is not None
    return {
        **tuned_kernel(trial.tile).keys,
        "name": trial.tile.name,
        "workgroups_per_cu": trial.workgroups_per_cu,
        "clocks": trial.clocks.model_dump(),
        "split": False,
    }


def _speedups(estimates: dict[Problem, Estimates], chosen: set[str], name: str) -> dict[Problem, float]:
    """By how much the tile beside the chosen ones shortens each problem; at least 1."""
    return {
        problem: max(1.0, min(clocks[each] for each in chosen) / clocks[name])
        for problem, clocks in estimates.items()
    }


def _why_small(estimates: dict[Problem, Estimates], chosen: set[str], name: str) -> str:
    speedups = _speedups(estimates, chosen, name)
    heads, seqlen, causal, packed = best = max(speedups, key=lambda problem: speedups[problem])
    share = sum(speedup > 1 for speedup in speedups.values()) / len(speedups)
    kind = f"{' causal' if causal else ''}{' packed' if packed else ''}"
    return (
        f"small grids: by estimate up to {speedups[best]:.2f} x (B1 H{heads} S{seqlen}{kind}) and better in "
        f"{share:.0%} of the problems"
    )
