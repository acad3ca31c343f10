"""Checks and times one tile of the forward."""

from typing import Any

import numpy as np
import torch

import flashattn_rocm._C as _C
from buildlib.tile_config import Clocks, FwdKernel, TileKernel, TileShape
from flashattn_rocm.accuracy import measure_accuracy
from flashattn_rocm.profiling.work import ForwardShape
from tunelib.bench import Arrays, Bench, Check, Speed, Timing, random_inputs

# Keys of the two launches whose difference is the cost of a step; a card needs more of them to rise above
# the jitter of a launch.
_KEYS = {"sim": (512, 1024), "card": (2048, 8192)}


class ForwardBench(Bench):
    """Of O and the log-sum-exp."""

    def _describe_launch(self, *arguments: Any) -> dict[str, Any]:
        return dict(_C.fwd_launch(*arguments, compute_units=self._device.compute_units))

    def check(self, kernel: TileKernel, function: Any) -> list[Check]:
        """See Bench."""
        return [self._check(kernel, function, causal) for causal in (False, True)]

    def speed(self, kernel: TileKernel, function: Any, workgroups_per_cu: int) -> Speed:
        """Times workgroups alone on their CUs, and with as many as fit."""
        tile = kernel.tile
        few, many = (
            round(keys / tile.block_n) for keys in _KEYS["sim" if self._device.simulated else "card"]
        )

        def clocks(steps: int, together: int) -> Timing:
            shape = self._shape(tile, steps, together)
            with self._launch(kernel, function, shape, random_inputs(shape, tile, "q k v")) as (launch, _):
                return self._time(launch)

        def step_of(short: Timing, long: Timing) -> float:
            return (long.clocks - short.clocks) / (many - few)

        alone = clocks(few, 1), clocks(many, 1)
        full = alone if workgroups_per_cu == 1 else tuple(clocks(n, workgroups_per_cu) for n in (few, many))
        step = step_of(*alone)
        flop = self._shape(tile, many, workgroups_per_cu).work().useful_flop
        return Speed(
            full[1],
            full[1].tflops(flop),
            Clocks(
                fixed=max(0, round(alone[0].clocks - step * few)),
                step=max(1, round(step)),
                step_full=max(1, round(step_of(*full))),
            ),
        )

    def whole(self, kernel: FwdKernel, function: Any, shape: ForwardShape) -> Timing:
        """Times a launch as dispatch makes it."""
        with self._launch(kernel, function, shape, random_inputs(shape, kernel.tile, "q k v")) as (launch, _):
            return self._time(launch)

    def _shape(self, tile: TileShape, steps: int, together: int) -> ForwardShape:
        """Two query blocks a head, as many heads as give every CU `together` workgroups."""
        heads = self._device.compute_units * together // 2
        return ForwardShape(tile.head_dim, 2 * tile.block_m, steps * tile.block_n, 1, heads, heads, False)

    def _check(self, kernel: TileKernel, function: Any, causal: bool) -> Check:
        tile = kernel.tile
        shape = ForwardShape(tile.head_dim, tile.block_m + 37, 2 * tile.block_n + 75, 1, 2, 1, causal)
        inputs = random_inputs(shape, tile, "q k v")
        got = self._run(kernel, function, shape, inputs)
        q, k, v, out, lse = (torch.from_numpy(array) for array in (*inputs.values(), *got.values()))
        accuracy = measure_accuracy(q, k, v, out, lse, causal=causal)
        return Check(accuracy.max_error, accuracy.allowed_error, tuple(accuracy.violations()))

    def _outputs(self, kernel: TileKernel, inputs: Arrays) -> Arrays:
        batch, seqlen_q, heads, _ = inputs["q"].shape
        outputs = {
            "out": np.zeros_like(inputs["q"]),
            "lse": np.zeros((batch, heads, seqlen_q), np.float32),
        }
        if isinstance(kernel, FwdKernel) and kernel.split:
            tile, slots = kernel.tile, _C.max_pieces
            outputs |= {
                "partial_o": np.zeros((slots, tile.block_m, tile.columns_v), np.float32),
                "partial_lse": np.zeros((slots, tile.block_m), np.float32),
                "arrivals": np.zeros((slots, tile.waves), np.uint64),
            }
        return outputs
