"""Times the microbenchmarks on the simulated card, for the timing tests."""

import functools
from typing import Any

from flashattn_rocm.sim.card import TimedCard
from flashattn_rocm.sim.microbenchmarks import BUFFER_BYTES, compile_microbenchmarks


@functools.cache
def card() -> TimedCard:
    """The simulated card with the microbenchmarks loaded."""
    return TimedCard(compile_microbenchmarks(), BUFFER_BYTES)


def profile(kernel: str, groups: int = 60, iterations: int = 16) -> dict[str, Any]:
    """The profile of one timed launch in workgroups of 256."""
    return card().time(kernel, groups, iterations)


def clocks_of_more_iterations(kernel: str, iterations: int = 16, groups: int = 60) -> float:
    """What `iterations` more cost; the launch and the cold start cancel."""
    long, short = (profile(kernel, groups, n * iterations)["clocks"] for n in (2, 1))
    return float(long - short)
