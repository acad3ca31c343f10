"""What the tuner holds a kernel of the backward to, on outputs that no kernel made."""

import math

import numpy as np
import pytest
import torch

from buildlib.tile_config import kernel_of
from flashattn_rocm.verify.definition import gradients_by_definition
from tests.scripts.tunelib.kit import bwd_tile
from tunelib.bwd_bench import BackwardBench

_OUTPUTS = {"dq": ("dq", "shift", "delta"), "dkdv": ("dk", "dv")}


class _Exact(BackwardBench):
    """Outputs by the definition, of which one is off by a share of its largest number."""

    def __init__(self, spoiled="", share=0.0) -> None:
        self._spoiled, self._share = spoiled, share
        self.shapes = []

    def _run(self, kernel, function, shape, inputs):
        self.shapes.append(shape)
        given = {name: torch.from_numpy(array).double() for name, array in inputs.items()}
        gradients = gradients_by_definition(
            [given[name] for name in "qkv"], given["dout"], causal=shape.causal
        )
        exact = dict(zip(("dq", "dk", "dv"), gradients, strict=True))
        lse = given["lse"]
        exact["shift"] = torch.where(lse == -math.inf, math.inf, lse / math.log(2))
        exact["delta"] = torch.einsum("bihd,bihd->bhi", given["dout"], given["out"])
        outputs = {}
        for name, like in self._outputs(kernel, inputs).items():
            array = exact[name].numpy().copy()
            if name == self._spoiled:
                array.flat[0] += self._share * np.abs(array[np.isfinite(array)]).max()
            outputs[name] = array.astype(like.dtype)
        return outputs


def _violations(gradient, spoiled="", share=0.0):
    kernel = kernel_of(bwd_tile(gradient=gradient), "f16")
    return [text for check in _Exact(spoiled, share).check(kernel, None) for text in check.violations]


@pytest.mark.parametrize("gradient", _OUTPUTS)
def test_the_definition_passes(gradient):
    assert _violations(gradient) == []


@pytest.mark.parametrize(
    ("gradient", "name"), [(gradient, name) for gradient, names in _OUTPUTS.items() for name in names]
)
def test_one_wrong_number_is_found(gradient, name):
    assert any(f"{name} is off by" in text for text in _violations(gradient, name, share=0.05))


@pytest.mark.parametrize("gradient", _OUTPUTS)
def test_blocks_end_inside_the_tensors_and_heads_share_keys(gradient):
    bench, shape = _Exact(), bwd_tile(gradient=gradient)
    bench.check(kernel_of(shape, "f16"), None)
    assert [each.causal for each in bench.shapes] == [False, True]
    for each in bench.shapes:
        own, other = (each.seqlen_q, each.seqlen_k) if gradient == "dq" else (each.seqlen_k, each.seqlen_q)
        assert own > shape.block_m
        assert own % shape.block_m
        assert other > 2 * shape.block_n
        assert other % shape.block_n
        assert each.heads == 2 * each.heads_kv
