"""Peak memory of the forward and of the backward is O(N)."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from flashattn_rocm import flash_attn_func
from flashattn_rocm.profiling.profile import timed_launches
from flashattn_rocm.sim.hip import simulator
from tests.kit.allocations import peak_allocation
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

SEQLEN, HEADS, HEAD_DIM = 16384, 16, 64
RESULTS = SEQLEN * HEADS * (HEAD_DIM * 2 + 4)  # out in fp16 and the log-sum-exp: 33 MiB


def sampled(function: Callable[[], object]) -> Callable[[], object]:
    """On the simulated card only a sample of the workgroups runs; what is allocated is the same."""

    def run() -> object:
        simulated = DEVICE.type == "cpu"
        with (
            timed_launches() if simulated else nullcontext(),
            simulator().sampled_only() if simulated else nullcontext(),
        ):
            return function()

    return run


@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True, "alibi_slopes": torch.full((HEADS,), 0.1), "dropout_p": 0.1}],
    ids=["plain", "alibi and dropout"],
)
def test_16384_tokens_and_16_heads_take_the_memory_of_the_results(options):
    q, k, v = make_qkv(1, SEQLEN, SEQLEN, HEADS, head_dim=HEAD_DIM)
    options = {name: x.to(DEVICE) if isinstance(x, torch.Tensor) else x for name, x in options.items()}
    peak = peak_allocation(sampled(lambda: flash_attn_func(q, k, v, **options)))
    assert RESULTS <= peak < RESULTS + 4096  # the scores alone would be 8 GiB


@pytest.mark.parametrize("options", [{}, {"causal": True, "softcap": 20.0}], ids=["plain", "softcap"])
def test_backward_takes_the_memory_of_the_gradients_and_two_numbers_a_query(options):
    seqlen = 4096
    q, k, v = make_qkv(1, seqlen, seqlen, HEADS, HEADS, head_dim=HEAD_DIM)
    out, dout = torch.zeros_like(q), torch.zeros_like(q)
    lse = torch.zeros(1, HEADS, seqlen, device=DEVICE)
    bwd = torch.ops.flashattn_rocm.bwd
    peak = peak_allocation(sampled(lambda: bwd(dout, q, k, v, out, lse, **options)))
    gradients, statistics = 3 * seqlen * HEADS * HEAD_DIM * 2, 2 * seqlen * HEADS * 4  # 24 and 0.5 MiB
    assert gradients <= peak < gradients + statistics + 4096  # P alone would be 512 MiB


def test_views_are_read_where_they_lie():
    q, k, v = randn(1, 512, 3, HEADS, HEAD_DIM, seed=1).unbind(2)
    bias = randn(512, 512, seed=2).expand(1, HEADS, 512, 512)
    peak = peak_allocation(lambda: flash_attn_func(q, k[:, :, ::2], v[:, :, ::2], attn_bias=bias))
    results = RESULTS * 512 // SEQLEN
    assert results <= peak < results + 4096


def test_the_measure_sees_the_scores_that_math_holds():
    q, k, v = (x.transpose(1, 2) for x in make_qkv(1, 1024, 1024, HEADS, head_dim=HEAD_DIM))
    with sdpa_kernel(SDPBackend.MATH):
        peak = peak_allocation(lambda: scaled_dot_product_attention(q, k, v))
    assert peak > 1024 * 1024 * HEADS * 2
