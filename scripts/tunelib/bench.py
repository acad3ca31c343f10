"""Checks and times one tile on a device."""

import math
import statistics
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import flashattn_rocm._C as _C
from buildlib.tile_config import Clocks, TileKernel, TileShape
from flashattn_rocm.accuracy import Accuracy, measure_accuracy
from flashattn_rocm.profiling.work import ForwardShape
from tunelib.card_state import CardState
from tunelib.hip_device import HipDevice, Launch

# Keys of the two launches whose difference is the cost of a step; a card needs more of them to rise above
# the jitter of a launch.
_KEYS = {"sim": (512, 1024), "card": (2048, 8192)}
_WARM_UP_MS = 100.0
_LAUNCHES = 20
_LEAST_CAUSE = 0.2  # per cent


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


@dataclass(frozen=True)
class Speed:
    """A tile's clocks for dispatch, and the launch with the card full."""

    clocks: Clocks
    full: Timing
    tflops: float


class Bench:
    """A device with what is known about its state.

    Args:
        device: to run on.
        state: of a card, sampled while it computes; None on the simulator.
    """

    def __init__(self, device: HipDevice, state: CardState | None) -> None:
        self._device = device
        self._state = state

    def accuracy(self, kernel: TileKernel, function: Any) -> list[Accuracy]:
        """The numerics contract, with a mask and without, on lengths that no block divides."""
        return [self._accuracy(kernel, function, causal) for causal in (False, True)]

    def speed(self, kernel: TileKernel, function: Any, workgroups_per_cu: int) -> Speed:
        """Times workgroups alone on their CUs, and with as many as fit."""
        tile = kernel.tile
        few, many = (
            round(keys / tile.block_n) for keys in _KEYS["sim" if self._device.simulated else "card"]
        )

        def clocks(steps: int, together: int) -> Timing:
            with self._launch(kernel, function, self._shape(tile, steps, together)) as launch:
                return self._time(launch)

        def step_of(short: Timing, long: Timing) -> float:
            return (long.clocks - short.clocks) / (many - few)

        alone = clocks(few, 1), clocks(many, 1)
        full = alone if workgroups_per_cu == 1 else tuple(clocks(n, workgroups_per_cu) for n in (few, many))
        step = step_of(*alone)
        flop = self._shape(tile, many, workgroups_per_cu).work().useful_flop
        return Speed(
            Clocks(
                fixed=max(0, round(alone[0].clocks - step * few)),
                step=max(1, round(step)),
                step_full=max(1, round(step_of(*full))),
            ),
            full[1],
            flop / (full[1].clocks / (full[1].clock_mhz * 1e6)) / 1e12,
        )

    def _shape(self, tile: TileShape, steps: int, together: int) -> ForwardShape:
        """Two query blocks a head, as many heads as give every CU `together` workgroups."""
        heads = self._device.compute_units * together // 2
        return ForwardShape(tile.head_dim, 2 * tile.block_m, steps * tile.block_n, 1, heads, heads, False)

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

    def _accuracy(self, kernel: TileKernel, function: Any, causal: bool) -> Accuracy:
        tile = kernel.tile
        shape = ForwardShape(tile.head_dim, tile.block_m + 37, 2 * tile.block_n + 75, 1, 2, 1, causal)
        q, k, v = _inputs(shape, tile)
        out = np.empty_like(q)
        lse = np.empty((1, shape.heads, shape.seqlen_q), np.float32)
        with self._launch(kernel, function, shape) as launch:
            self._device.run(launch)
            for array, address in zip((out, lse), self._results, strict=True):
                self._device.read(address, array)
        want, got = ([torch.from_numpy(array) for array in arrays] for arrays in ((q, k, v), (out, lse)))
        return measure_accuracy(want[0], want[1], want[2], got[0], got[1], causal=causal)

    @contextmanager
    def _launch(self, kernel: TileKernel, function: Any, shape: ForwardShape) -> Iterator[Launch]:
        with ExitStack() as stack:
            arrays = _inputs(shape, kernel.tile)
            addresses = [stack.enter_context(self._device.memory(a.nbytes, a)) for a in arrays]
            lse_bytes = 4 * shape.batch * shape.heads * shape.seqlen_q
            self._results = [
                stack.enter_context(self._device.memory(size)) for size in (arrays[0].nbytes, lse_bytes)
            ]
            packed = _C.fwd_launch(
                kernel.keys,
                addresses + self._results,
                shape.batch,
                *(shape.seqlen_q, shape.seqlen_k, shape.heads, shape.heads_kv, shape.head_dim),
                shape.causal,
                1 / math.sqrt(shape.head_dim),
            )
            yield Launch(function, packed["grid"], packed["threads"], packed["arguments"])


def _inputs(shape: ForwardShape, tile: TileShape) -> list[Any]:
    """Seeded by nothing but the shape: a rerun computes on the same numbers."""
    dtype = np.float32 if tile.numbers == "f32" else np.float16
    random = np.random.default_rng(1)
    sizes = (
        (shape.seqlen_q, shape.heads),
        (shape.seqlen_k, shape.heads_kv),
        (shape.seqlen_k, shape.heads_kv),
    )
    return [
        random.standard_normal((shape.batch, seqlen, heads, shape.head_dim), np.float32).astype(dtype)
        for seqlen, heads in sizes
    ]
