"""What can be tuned: the forward and the backward, each with its tiles, launches and rule of choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import flashattn_rocm._C as _C
from buildlib.tile_config import BwdShape, BwdTile, FwdTile, TileConfig, TileShape
from tunelib import bwd_choose, fwd_choose
from tunelib.bench import Bench
from tunelib.bwd_bench import BackwardBench
from tunelib.card_state import CardState
from tunelib.fwd_bench import ForwardBench
from tunelib.hip_device import HipDevice
from tunelib.tiles import Space
from tunelib.trial import Fit, Trial

_PLAIN = ("chunks", "plain", "16bit")


@dataclass(frozen=True)
class Choice:
    """What a choice among trials is made with.

    Attributes:
        config: as it is.
        compute_units: of the device.
        fit: of a tile's kernel with an element.
        where: "simulated" or the card's name.
        launches: whole ones, of the forward.
    """

    config: TileConfig
    compute_units: int
    fit: Fit
    where: str
    launches: fwd_choose.Launches | None


@dataclass(frozen=True)
class Pass:
    """One of the two.

    Attributes:
        name: of its rows in a configuration, and of its header in csrc/kernels.
        space: of its tiles.
        bench: that checks and times them.
        choose: the rows among trials.
        in_user_file: whether the package reads rows of the user's own file: where dispatch has a choice.
    """

    name: str
    space: Space
    bench: Callable[[HipDevice, CardState | None], Bench]
    choose: Callable[[Sequence[Trial], Choice], Sequence[FwdTile | BwdTile]]
    in_user_file: bool


def _choose_forward(trials: Sequence[Trial], choice: Choice) -> list[FwdTile]:
    def can_ship(trial: Trial) -> bool:
        return all(choice.fit(trial.tile, element) for element in trial.tile.elements)

    return fwd_choose.choose_rows(
        trials, choice.compute_units, can_ship, choice.where, choice.config.fwd, choice.launches
    )


def _choose_backward(trials: Sequence[Trial], choice: Choice) -> list[BwdTile]:
    return bwd_choose.choose_rows(trials, choice.fit, choice.where, choice.config.bwd)


# Of both passes. Blocks from the narrowest that a wave can hold to twice what any row ships with: extremes
# show what binds.
_AXES = {
    "block_m": (8, 16, 32, 48, 64, 96, 128, 192, 256),
    "block_n": (16, 32, 64, 96, 128),
    "waves": (2, 4, 8),
    "p_keys": (16, 32, 64, 96, 128),
    "operands": ("streamed", "on_demand"),
}
_USUAL = ((32, 48, 64, 96, 128, 192), (32, 64, 128))  # block_m, block_n

FORWARD = Pass(
    name="fwd",
    space=Space(
        shape=TileShape,
        rows=lambda config: config.fwd,
        lds_budget=_C.fwd_lds_budget,
        plain=(_PLAIN,),
        axes={**_AXES, "kv": ("apart", "in_turns"), "rescale": ("lazy", "always")},
        usual=_USUAL,
        usual_others=((64,), (32, 64)),
    ),
    bench=ForwardBench,
    choose=_choose_forward,
    in_user_file=True,
)

BACKWARD = Pass(
    name="bwd",
    space=Space(
        shape=BwdShape,
        rows=lambda config: config.bwd,
        lds_budget=_C.bwd_lds_budget,
        plain=(("dq", *_PLAIN), ("dkdv", *_PLAIN)),
        axes=_AXES,
        usual=_USUAL,
        usual_others=((32, 64), (32, 64)),
        every_p_keys=True,  # more of P at a time gained nothing (docs/tuning/bwd.md, row 10)
        rows_by_element=True,
    ),
    bench=BackwardBench,
    choose=_choose_backward,
    in_user_file=False,
)

PASSES = {each.name: each for each in (FORWARD, BACKWARD)}
