"""The selection rule of the backward: for each kind of kernel and each element the quickest tile.

Dispatch has no choice among tiles of a kind (csrc/ops/bwd_dispatch.cpp), so there is one for each element:
where the quickest does not build with bf16 on one of the archs, bf16 takes the quickest that does. Tiles are
timed with the first of their elements.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from buildlib.tile_config import BwdTile, Element
from tunelib.trial import Fit, Trial, Verdict


def choose_rows(trials: Iterable[Trial], fit: Fit, where: str) -> list[BwdTile]:
    """The rows for the kinds and head dims of the trials.

    Args:
        trials: all that are known.
        fit: of a tile's kernel with an element; the next best tile is taken where it is 0.
        where: "simulated" or the card's name, for the reasons.
    """
    timed = [trial for trial in trials if trial.verdict == Verdict.TIMED]
    ordered = sorted(timed, key=_kind)
    return [row for _, some in groupby(ordered, _kind) for row in _choose(list(some), fit, where)]


def _kind(trial: Trial) -> tuple[object, ...]:
    gradient, access, scores, numbers = trial.tile.kind
    return (
        gradient == "dkdv",
        numbers == "f32",
        access == "elements",
        scores == "modified",
        trial.tile.head_dim,
    )


def _choose(trials: Sequence[Trial], fit: Fit, where: str) -> list[BwdTile]:
    quickest = sorted(trials, key=lambda trial: (-(trial.tflops or 0.0), trial.tile.name))
    chosen: dict[str, list[Element]] = {}
    for element in trials[0].tile.elements:
        found = next((trial.tile.name for trial in quickest if fit(trial.tile, element)), None)
        if found is not None:
            chosen.setdefault(found, []).append(element)
    return [
        _row(
            trial, elements, fit, f"{_rank(place)} of {len(trials)} tiles: {trial.tflops:.2f} TFLOPS {where}"
        )
        for place, trial in enumerate(quickest)
        if (elements := chosen.get(trial.tile.name))
    ]


def _rank(place: int) -> str:
    return "the quickest" if place == 0 else f"the quickest that builds, number {place + 1}"


def _row(trial: Trial, elements: Sequence[Element], fit: Fit, why: str) -> BwdTile:
    row = {**trial.tile.model_dump(exclude_defaults=True), "why": why}
    if tuple(elements) != trial.tile.elements:
        row["for_elements"] = tuple(elements)
    return BwdTile(**row, workgroups_per_cu=fit(trial.tile, elements[0]))
