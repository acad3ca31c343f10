"""The rival: correct, found by the simulator's profile, and refused where it cannot be right."""

import pytest
import torch

pytest.importorskip("triton", reason="the rival needs pip install 'flashattn-rocm[benchmark]'")

from flashattn_rocm.accuracy import measure_accuracy
from flashattn_rocm.benchmarks.device import SimulatedDevice
from flashattn_rocm.benchmarks.implementations import make_inputs
from flashattn_rocm.benchmarks.run import run_case
from flashattn_rocm.benchmarks.shapes import parse_shape
from flashattn_rocm.benchmarks.triton_compile import TRITON_TILES, compile_attention
from flashattn_rocm.benchmarks.triton_rival import TritonRival


# Ragged ends, GQA, batches, more and fewer keys than queries (rows that see no key), both masks.
@pytest.mark.parametrize(
    "text",
    [
        "2,130,130,4,2,64,causal",
        "1,65,200,2,1,64",
        "1,100,70,2,2,64,causal",
        "2,130,130,2,2,128,causal",
        "1,64,97,4,1,128",
        "1,100,70,2,2,128,causal",
    ],
)
def test_the_rival_keeps_the_numerics_contract(text):
    shape = parse_shape(text).shape
    inputs = make_inputs(shape, "cpu")
    for variant in TritonRival().variants(shape.head_dim):
        with variant.prepared(inputs, shape.causal) as forward:
            out, lse = forward()
        assert measure_accuracy(*inputs, out, lse, causal=shape.causal).violations() == []


def test_the_fastest_tile_counts():
    case = parse_shape("1,128,128,2,2,64")
    row = run_case(SimulatedDevice(), TritonRival(), case)
    by_tile = {str(t): run_case(SimulatedDevice(), TritonRival(t), case).result for t in TRITON_TILES[64]}
    assert row.result == min(by_tile.values(), key=lambda result: result.ms)
    assert by_tile[row.result.tile] == row.result
    assert len({result.ms for result in by_tile.values()}) == len(by_tile)
    assert row.result.cycles > 1000


@pytest.mark.parametrize("head_dim", TRITON_TILES)
def test_it_computes_by_dot2(head_dim):
    for tile in TRITON_TILES[head_dim]:
        assert compile_attention(head_dim, False, tile).assembly.count("v_dot2_f32_f16") >= 1024


def test_strides_that_it_was_not_compiled_for_are_refused():
    q, k, v = torch.zeros(3, 1, 16, 2, 72).half()[..., :64]
    with pytest.raises(ValueError, match="multiples of 16"), TritonRival().prepared((q, k, v), False):
        pass
