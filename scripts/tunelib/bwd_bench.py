"""Checks and times one tile of the backward."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

import flashattn_rocm._C as _C
from buildlib.tile_config import GradientKernel, TileKernel
from flashattn_rocm.profiling.work import ForwardShape
from flashattn_rocm.verify.definition import attention_by_definition, gradients_by_definition
from flashattn_rocm.verify.judge import Compared, violation
from tunelib.bench import Arrays, Bench, Check, Speed, random_inputs

_OTHER_ROWS = {"sim": 1024, "card": 4096}  # rows of the other side in the launch that is timed


class BackwardBench(Bench):
    """Of dQ, or of dK and dV; no launch of the other kernel is needed for either."""

    _describe_launch = staticmethod(_C.bwd_launch)

    def check(self, kernel: TileKernel, function: Any) -> list[Check]:
        """See Bench; of dQ's kernel also what it writes of each query."""
        assert isinstance(kernel, GradientKernel)
        return [each for causal in (False, True) for each in self._check(kernel, function, causal)]

    def speed(self, kernel: TileKernel, function: Any, workgroups_per_cu: int) -> Speed:
        """Times as many workgroups as fit on each CU: two own blocks a head."""
        assert isinstance(kernel, GradientKernel)
        steps = round(_OTHER_ROWS["sim" if self._device.simulated else "card"] / kernel.tile.block_n)
        heads = self._device.compute_units * workgroups_per_cu // 2
        shape = _shape(
            kernel, 2 * kernel.tile.block_m, steps * kernel.tile.block_n, heads, heads, causal=False
        )
        with self._launch(kernel, function, shape, _inputs(kernel, shape, torch.float32)) as (launch, _):
            full = self._time(launch)
        return Speed(full, full.tflops(shape.backward_work(kernel.tile.gradient).useful_flop))

    def _check(self, kernel: GradientKernel, function: Any, causal: bool) -> list[Check]:
        tile = kernel.tile
        shape = _shape(kernel, tile.block_m + 37, 2 * tile.block_n + 75, 2, 1, causal)
        inputs = _inputs(kernel, shape, torch.float64)
        given, got = (
            {name: torch.from_numpy(array) for name, array in arrays.items()}
            for arrays in (inputs, self._run(kernel, function, shape, inputs))
        )
        return [
            Check(each.max_error, each.allowed_error, tuple(filter(None, [violation(each)])))
            for each in _compare(got, given, causal)
        ]

    def _outputs(self, kernel: TileKernel, inputs: Arrays) -> Arrays:
        """Gradients, and with dQ what it writes of each query."""
        assert isinstance(kernel, GradientKernel)
        likes = {"dq": "q", "shift": "lse", "delta": "lse"}
        if kernel.tile.gradient == "dkdv":
            likes = {"dk": "k", "dv": "v"}
        return {name: np.zeros_like(inputs[like]) for name, like in likes.items()}


def _shape(
    kernel: GradientKernel, own_rows: int, other_rows: int, heads: int, heads_kv: int, causal: bool
) -> ForwardShape:
    owns_queries = kernel.tile.gradient == "dq"
    queries, keys = (own_rows, other_rows) if owns_queries else (other_rows, own_rows)
    return ForwardShape(kernel.tile.head_dim, queries, keys, 1, heads, heads_kv, causal)


def _inputs(kernel: GradientKernel, shape: ForwardShape, precision: torch.dtype) -> Arrays:
    """What a launch reads; out and lse by the definition in that precision."""
    inputs = random_inputs(shape, kernel.tile, "q k v dout")
    q, k, v, _ = (torch.from_numpy(array) for array in inputs.values())
    out, lse = attention_by_definition(q, k, v, precision=precision, causal=shape.causal)
    inputs["out"], inputs["lse"] = out.to(q.dtype).numpy(), lse.float().numpy()
    if kernel.tile.gradient == "dkdv":
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        inputs["shift"] = _shift(tensors["lse"]).float().numpy()
        inputs["delta"] = _delta(tensors["dout"], tensors["out"], torch.float32).numpy()
    return inputs


def _compare(got: dict[str, Tensor], given: dict[str, Tensor], causal: bool) -> list[Compared]:
    """What a launch wrote beside float64, and beside torch in the dtypes of the tensors."""
    leaves, dout = [given[name] for name in ("q", "k", "v")], given["dout"]
    want, by_torch = (
        dict(
            zip(
                ("dq", "dk", "dv"),
                gradients_by_definition(leaves, dout, precision=precision, causal=causal),
                strict=True,
            )
        )
        for precision in (torch.float64, dout.dtype)
    )
    want |= {"shift": _shift(given["lse"].double()), "delta": _delta(dout, given["out"], torch.float64)}
    by_torch |= {"shift": _shift(given["lse"]), "delta": _delta(dout, given["out"], torch.float32)}
    return [Compared(name, tensor, want[name], by_torch[name]) for name, tensor in got.items()]


def _shift(lse: Tensor) -> Tensor:
    """Log-sum-exp in base 2; +inf beside a row without keys (csrc/attention/row_statistics.h)."""
    return (lse * math.log2(math.e)).masked_fill(lse == -math.inf, math.inf)


def _delta(dout: Tensor, out: Tensor, precision: torch.dtype) -> Tensor:
    """(batch, heads, seqlen_q): sum of dout * out."""
    return (dout.to(precision) * out.to(precision)).sum(-1).transpose(1, 2).contiguous()
