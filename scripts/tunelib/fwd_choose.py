"""The selection rule of the forward: which of the timed tiles become rows.

For each head dim:

1. of the tiles with plain scores and rows of chunks the one that is quickest on a large problem;
2. then, for usual head dims, the tiles that together shorten the dispatcher's estimate most over a set of
   problems, small grids and packed sequences among them, as many as are worth a kernel each; tiles that also
   split keys are weighed with both of their kernels, but for packed sequences. Sets that are as good within
   the error of the estimate are told apart by whole launches of some small grids, and what ships stays unless
   another set is quicker by more than a tie;
3. the quickest tile that changes scores, and the quickest that moves single elements, where there are rows of
   such kinds.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import combinations, islice, product, takewhile
from typing import Protocol

import flashattn_rocm._C as _C
from buildlib.tile_config import FwdKernel, FwdTile
from flashattn_rocm.profiling.work import ForwardShape
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
# Sets of tiles that close together are told apart by launches. An estimate is within 0.8 and 1.15 of a
# launch; of all problems it preferred by 1.8 % what launches of small grids found 2 to 7 % slower
# (docs/tuning/fwd.md, row 66). Each set more costs some launches, of 3 s on the simulator. A tie of launches
# is as wide as the backward's: a launch gains or loses as much by how evenly its last round ends.
_TIE = 0.02
_MOST_SETS = 8
# heads, sequence length, causal: each length with a mask and without, more heads where sequences are short.
# Each counts twice: also as packed sequences, which take the clocks of the same grid, but whose query blocks
# are not cut.
_LAUNCHED = (
    *((8, 77, False), (32, 77, True), (16, 128, False), (8, 128, True), (32, 256, False), (16, 256, True)),
    *((8, 512, False), (32, 512, True), (16, 1024, False), (8, 1024, True), (8, 2048, False)),
    (16, 2048, True),
)
_ACCESS_AND_SCORES = (("chunks", "plain"), ("chunks", "modified"), ("elements", "modified"))

Problem = tuple[int, int, bool, bool]
Estimates = dict[str, float]  # clocks by tile


class OutOfTimeError(Exception):
    """No time is left for launches."""


class Launches(Protocol):
    """Of a device; they cost time, and are remembered."""

    def clocks(self, kernel: FwdKernel, shape: ForwardShape) -> float:
        """Of a launch; infinite where it failed.

        Raises:
            OutOfTimeError: it is not known, and no time is left.
        """

    def compared(self, tiles: Collection[str], clocks: float) -> None:
        """Takes note of the mean of a set of tiles."""


def choose_rows(
    trials: Iterable[Trial],
    compute_units: int,
    can_ship: Callable[[Trial], bool],
    where: str,
    shipped: Collection[FwdTile] = (),
    launches: Launches | None = None,
) -> list[FwdTile]:
    """The rows for the head dims of the trials.

    Args:
        trials: all that are known.
        compute_units: of the card.
        can_ship: whether a tile that was chosen also builds for the other archs of the configuration; the
            next best is taken where not.
        where: "simulated" or the card's name, for the reasons.
        shipped: rows as they are. A kernel that cuts query blocks along the keys is weighed beside the plain
            one of its tile: what it gains is no other tile's gain.
        launches: of the device, for 16-bit numbers; None: estimates alone decide.
    """
    timed = [trial for trial in trials if trial.verdict == Verdict.TIMED]
    rows = []
    for head_dim in sorted({trial.tile.head_dim for trial in timed}, reverse=True):
        for numbers, (access, scores) in product(("16bit", "f32"), _ACCESS_AND_SCORES):
            kind = (access, scores, numbers)
            some = [t for t in timed if t.tile.head_dim == head_dim and t.tile.kind == kind]
            if some:
                kernels = [kernel_of_trial(t, split) for t in some for split in _split_or_not(t, shipped)]
                estimates = {p: _estimates(kernels, p, compute_units) for p in _PROBLEMS}
                by_launches = None
                if launches is not None and numbers == "16bit":
                    by_launches = partial(_mean_of_launches, kernels, compute_units, launches)
                rows += _choose(some, estimates, can_ship, where, {row.name for row in shipped}, by_launches)
    return rows


def row_of(trial: Trial, why: str) -> FwdTile:
    """A trial, which must be timed, as a row of a configuration."""
    assert trial.clocks is not None
    return FwdTile(
        **trial.tile.model_dump(), workgroups_per_cu=trial.workgroups_per_cu, clocks=trial.clocks, why=why
    )


def kernel_of_trial(trial: Trial, split: bool = False) -> FwdKernel:
    """Of the element that is tuned, with the clocks of the trial."""
    return FwdKernel(tile=row_of(trial, "timed"), element=trial.tile.elements[0], split=split)


def _split_or_not(trial: Trial, shipped: Collection[FwdTile]) -> tuple[bool, ...]:
    splits = any(row.split and row.name == trial.tile.name for row in shipped)
    return (False, True) if splits else (False,)


def _choose(
    trials: Sequence[Trial],
    estimates: dict[Problem, Estimates],
    can_ship: Callable[[Trial], bool],
    where: str,
    shipped: Collection[str],
    by_launches: Callable[[Collection[str]], float] | None,
) -> list[FwdTile]:
    by_name = {trial.tile.name: trial for trial in trials}
    plain = trials[0].tile.scores == "plain"

    first = _first_that(can_ship, sorted(by_name.values(), key=lambda t: estimates[_LARGE][t.tile.name]))
    if first is None:
        return []
    text = f"the quickest with the card full of {len(trials)} tiles: {first.tflops:.2f} TFLOPS {where}"
    rows = [row_of(first, text)]
    most = _MOST_ROWS.get(trials[0].tile.head_dim, 1) if plain else 1
    small = _small_tiles(
        estimates, first.tile.name, most, lambda name: can_ship(by_name[name]), shipped, by_launches
    )
    for place, name in enumerate(small):
        others = {first.tile.name, *small[:place]}
        rows.append(row_of(by_name[name], _why_small(estimates, others, name)))
    return rows


def _small_tiles(
    estimates: dict[Problem, Estimates],
    first: str,
    most: int,
    can_ship: Callable[[str], bool],
    shipped: Collection[str],
    by_launches: Callable[[Collection[str]], float] | None,
) -> list[str]:
    """The tiles beside the first that together shorten all problems most, the one that does most first.

    Not one after the other: at head_dim 32 the best single one, 48x64 in turns, is not in the best three.
    """
    ships: dict[str, bool] = {}  # what was asked: it costs a compilation

    def can_ship_all(some: Iterable[str]) -> bool:
        return all(ships[name] if name in ships else ships.setdefault(name, can_ship(name)) for name in some)

    names = sorted(next(iter(estimates.values())).keys() - {first})

    def mean_log(some: Collection[str]) -> float:
        return _mean_log(estimates, {first, *some})

    chosen: tuple[str, ...] = ()
    sets: list[tuple[str, ...]] = []
    for count in range(1, most):
        candidates = sorted(combinations(names, count), key=mean_log)
        found = next(filter(can_ship_all, candidates), None)
        if found is None or mean_log(chosen) - mean_log(found) <= math.log(1 + _LEAST_GAIN):
            break
        chosen, sets = found, candidates
    limit = mean_log(chosen) + math.log(1 + _TIE)
    close = takewhile(lambda some: mean_log(some) <= limit, sets)
    ties = list(islice((some for some in close if all(ships.get(name, True) for name in some)), _MOST_SETS))
    if by_launches is not None and len(ties) > 1:
        try:
            means = {some: by_launches({first, *some}) for some in ties}
            chosen = next(filter(can_ship_all, sorted(ties, key=means.__getitem__)))
            limit = means[chosen] * (1 + _TIE)
            stays = (some for some in ties if means[some] <= limit and {first, *some} <= set(shipped))
            chosen = next(stays, chosen)
        except OutOfTimeError:
            pass  # the best by estimate stands
    order: list[str] = []
    while len(order) < len(chosen):
        left = sorted(set(chosen) - set(order))
        order.append(min(left, key=lambda name: mean_log([*order, name])))
    return order


def _mean_log(estimates: dict[Problem, Estimates], names: Collection[str]) -> float:
    """Of the clocks of all problems, each by the quickest of the tiles."""
    return sum(math.log(min(clocks[name] for name in names)) for clocks in estimates.values()) / len(
        estimates
    )


def _first_that(can_ship: Callable[[Trial], bool], trials: Sequence[Trial]) -> Trial | None:
    return next((trial for trial in trials if can_ship(trial)), None)


def _ranking(
    kernels: Sequence[FwdKernel], problem: Problem, compute_units: int
) -> list[tuple[FwdKernel, float]]:
    """The kernels that can serve a problem with their estimates, as dispatch weighs them: the best first."""
    heads, seqlen, causal, packed = problem
    tile = kernels[0].tile
    by_name = {kernel.name: kernel for kernel in kernels}
    ranking = _C.rank_fwd(
        *(1, seqlen, seqlen, heads, heads, tile.head_dim, causal),
        element=kernels[0].element,
        chunks=tile.access == "chunks",
        changes_scores=tile.scores == "modified",
        packed=packed,
        compute_units=compute_units,
        rows=[kernel.keys for kernel in kernels],
    )
    return [(by_name[row["name"]], row["estimated_clocks"]) for row in ranking]


def _estimates(kernels: Sequence[FwdKernel], problem: Problem, compute_units: int) -> Estimates:
    # Best first, so the quicker kernel of a tile that has two is met last.
    ranking = _ranking(kernels, problem, compute_units)
    return {kernel.tile.name: clocks for kernel, clocks in reversed(ranking)}


def _mean_of_launches(
    kernels: Sequence[FwdKernel], compute_units: int, launches: Launches, names: Collection[str]
) -> float:
    """Geometric mean of the clocks of launches, each by the kernel that dispatch takes of these tiles."""
    some = [kernel for kernel in kernels if kernel.tile.name in names]
    logs = []
    for (heads, seqlen, causal), packed in product(_LAUNCHED, (False, True)):
        kernel, _ = _ranking(some, (heads, seqlen, causal, packed), compute_units)[0]
        shape = ForwardShape(kernel.tile.head_dim, seqlen, seqlen, 1, heads, heads, causal)
        logs.append(math.log(launches.clocks(kernel, shape)))
    mean = math.exp(sum(logs) / len(logs))
    launches.compared(names, mean)
    return mean


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
