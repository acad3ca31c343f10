"""Checks and times one tile on a device: what the forward and the backward have in common."""

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buildlib.tile_config import Clocks, TileKernel, TileShape
from flashattn_rocm.profiling.work import ForwardShape
from tunelib.card_state import CardState
from tunelib.hip_device import HipDevice, Launch

_WARM_UP_MS = 100.0
_LAUNCHES = 20
_LEAST_CAUSE = 0.2  # per cent

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Check:
    """A result beside float64.

    Attributes:
        max_error: of its entries.
        allowed_error: by the numerics contract.
        violations: one sentence for each part of the contract that does not hold.
    """

    max_error: float
    allowed_error: float
    violations: tuple[str, ...]


@dataclass(frozen=True)
class Timing:
    """One launch.

    Attributes:
        clocks: of the compute units.
        clock_mhz: at which they ran.
        watts: of the board; None where unknown.
        valu_busy: per cent; None on a card, whose events cannot tell, as causes.
        causes: shares of the SIMDs' clocks in per cent.
    """

    clocks: float
    clock_mhz: float
    watts: float | None = None
    valu_busy: float | None = None
    causes: dict[str, float] = field(default_factory=dict)

    def tflops(self, flop: float) -> float:
        """The rate of so many operations in the launch."""
        return flop / (self.clocks / (self.clock_mhz * 1e6)) / 1e12


@dataclass(frozen=True)
class Speed:
    """The launch with the card full, and a tile's clocks where the dispatcher weighs tiles by them."""

    full: Timing
    tflops: float
    clocks: Clocks | None = None


class Bench(ABC):
    """A device with what is known about its state.

    Args:
        device: to run on.
        state: of a card, sampled while it computes; None on the simulator.
    """

    _describe_launch: Callable[..., Any]  # by the extension

    def __init__(self, device: HipDevice, state: CardState | None) -> None:
        self._device = device
        self._state = state

    @abstractmethod
    def check(self, kernel: TileKernel, function: Any) -> list[Check]:
        """The numerics contract, with a mask and without, on lengths that no block divides."""

    @abstractmethod
    def speed(self, kernel: TileKernel, function: Any, workgroups_per_cu: int) -> Speed:
        """Times launches, one of them with as many workgroups as fit on each CU."""

    @abstractmethod
    def _outputs(self, kernel: TileKernel, inputs: Arrays) -> Arrays:
        """Zeros in the shapes of what a launch writes."""

    @contextmanager
    def _launch(
        self, kernel: TileKernel, function: Any, shape: ForwardShape, inputs: Arrays
    ) -> Iterator[tuple[Launch, dict[str, int]]]:
        """A launch, and the addresses of its inputs and outputs on the device by name."""
        with ExitStack() as stack:
            arrays = {**inputs, **self._outputs(kernel, inputs)}
            addresses = {
                name: stack.enter_context(self._device.memory(array.nbytes, array))
                for name, array in arrays.items()
            }
            packed = self._describe_launch(
                kernel.keys,
                addresses,
                shape.batch,
                *(shape.seqlen_q, shape.seqlen_k, shape.heads, shape.heads_kv, shape.head_dim),
                shape.causal,
                1 / math.sqrt(shape.head_dim),
            )
            yield Launch(function, packed["grid"], packed["threads"], packed["arguments"]), addresses

    def _run(self, kernel: TileKernel, function: Any, shape: ForwardShape, inputs: Arrays) -> Arrays:
        """What a launch writes."""
        with self._launch(kernel, function, shape, inputs) as (launch, addresses):
            self._device.run(launch)
            outputs = self._outputs(kernel, inputs)
            for name, array in outputs.items():
                self._device.read(addresses[name], array)
        return outputs

    def _time(self, launch: Launch) -> Timing:
        if self._device.simulated:
            profile = self._device.profile(launch)
            shares = {key: 100 * clocks / profile.simd_clocks for key, clocks in profile.causes.items()}
            causes = {key: share for key, share in shares.items() if share > _LEAST_CAUSE}
            busy = profile.counters["VALUBusy"]
            return Timing(profile.clocks, profile.card.clock_mhz, valu_busy=busy, causes=causes)
        spent = 0.0
        while spent < _WARM_UP_MS:
            spent += sum(self._device.milliseconds(launch, _LAUNCHES, lambda: None))
        samples = []
        times = self._device.milliseconds(
            launch, _LAUNCHES, lambda: samples.append(self._state.sample() if self._state else None)
        )
        sample = samples[0]
        mhz = sample.clock_mhz if sample and sample.clock_mhz else self._device.clock_mhz
        watts = sample.watts if sample else None
        return Timing(statistics.median(times) * mhz * 1e3, mhz, watts)


def random_inputs(shape: ForwardShape, tile: TileShape, names: str) -> Arrays:
    """Standard normal q, k, v and what else lies as q, seeded by nothing but the shape: reruns repeat.

    Args:
        shape: of the problem.
        tile: whose numbers they are of.
        names: in order, with spaces between.
    """
    dtype = np.float32 if tile.numbers == "f32" else np.float16
    random = np.random.default_rng(1)

    def array(seqlen: int, heads: int) -> NDArray[Any]:
        size = (shape.batch, seqlen, heads, shape.head_dim)
        return random.standard_normal(size, np.float32).astype(dtype)

    of_keys = shape.seqlen_k, shape.heads_kv
    return {
        name: array(*(of_keys if name in ("k", "v") else (shape.seqlen_q, shape.heads)))
        for name in names.split()
    }
