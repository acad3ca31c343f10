"""Times the validation kernels on the simulated card, for the timing tests."""

import functools
from typing import Any

from flashattn_rocm.sim.card import TimedCard
from flashattn_rocm.sim.validation_kernels import BUFFER_BYTES, KERNEL_FILES, compile_kernels


@functools.cache
def card() -> TimedCard:
    """The simulated card with the validation kernels loaded."""
    return TimedCard([compile_kernels(source) for source in KERNEL_FILES], BUFFER_BYTES)


def profile(kernel: str, groups: int = 60, iterations: int = 16) -> dict[str, Any]:
    """The profile of one timed launch in workgroups of 256."""
    return card().time(kernel, groups, iterations)


def clocks_of_more_iterations(kernel: str, iterations: int = 16, groups: int = 60) -> float:
    """What `iterations` more cost; the launch and the cold start cancel."""
    long, short = (profile(kernel, groups, n * iterations)["clocks"] for n in (2, 1))
    return float(long - short)
