"""The selection rule of the backward: for each kind of kernel and each element the quickest tile.

Dispatch has no choice among tiles of a kind (csrc/ops/bwd_dispatch.cpp), so there is one for each element:
where the quickest does not build with bf16 on one of the archs, bf16 takes the quickest that does. Tiles are
timed with the first of their elements. A row stays unless another tile is quicker by more than a tie.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from buildlib.tile_config import BwdTile, Element
from tunelib.trial import Fit, Trial, Verdict

_TIE = 0.02  # of the rate; a whole launch gains or loses as much by how evenly its last round ends


def choose_rows(
    trials: Iterable[Trial], fit: Fit, where: str, shipped: Collection[BwdTile] = ()
) -> list[BwdTile]:
    """The rows for the kinds and head dims of the trials.

    Args:
        trials: all that are known.
        fit: of a tile's kernel with an element; the next best tile is taken where it is 0.
        where: "simulated" or the card's name, for the reasons.
        shipped: rows as they are.
    """
    timed = [trial for trial in trials if trial.verdict == Verdict.TIMED]
    ordered = sorted(timed, key=_kind)
    return [row for _, some in groupby(ordered, _kind) for row in _choose(list(some), fit, where, shipped)]


def _kind(trial: Trial) -> tuple[object, ...]:
    gradient, access, scores, numbers = trial.tile.kind
    return (
        gradient == "dkdv",
        numbers == "f32",
        access == "elements",
        scores == "modified",
        trial.tile.head_dim,
    )


def _choose(trials: Sequence[Trial], fit: Fit, where: str, shipped: Collection[BwdTile]) -> list[BwdTile]:
    quickest = sorted(trials, key=lambda trial: (-_rate(trial), trial.tile.name))
    chosen: dict[str, list[Element]] = {}
    for element in trials[0].tile.elements:
        stays = {row.name for row in shipped if element in row.elements}
        best = next((trial for trial in quickest if fit(trial.tile, element)), None)
        if best is None:
            continue
        ties = (trial for trial in quickest if _rate(trial) >= (1 - _TIE) * _rate(best))
        found = next((t for t in ties if t.tile.name in stays and fit(t.tile, element)), best)
        chosen.setdefault(found.tile.name, []).append(element)
    return [
        _row(
            trial,
            elements,
            fit,
            f"{_rank(place, elements)} of {len(trials)} tiles: {_rate(trial):.2f} TFLOPS {where}",
        )
        for place, trial in enumerate(quickest)
        if (elements := chosen.get(trial.tile.name))
    ]


def _rate(trial: Trial) -> float:
    return trial.tflops or 0.0


def _rank(place: int, elements: Sequence[Element]) -> str:
    return "the quickest" if place == 0 else f"the best for {' and '.join(elements)}, number {place + 1}"


def _row(trial: Trial, elements: Sequence[Element], fit: Fit, why: str) -> BwdTile:
    row = {**trial.tile.model_dump(exclude_defaults=True), "why": why}
    if tuple(elements) != trial.tile.elements:
        row["for_elements"] = tuple(elements)
    return BwdTile(**row, workgroups_per_cu=fit(trial.tile, elements[0]))
