"""The Python functions: flash-attn's signatures, packed forms, packed sequences, and what they refuse."""

import inspect

import numpy as np
import pytest
import torch

import flashattn_rocm
from flashattn_rocm import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

TAIL = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, "
    "deterministic=False, return_attn_probs=False"
)
SEQUENCES = "cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k"
UPSTREAM = {
    "flash_attn_func": f"q, k, v, {TAIL}",
    "flash_attn_kvpacked_func": f"q, kv, {TAIL}",
    "flash_attn_qkvpacked_func": f"qkv, {TAIL}",
    "flash_attn_varlen_func": f"q, k, v, {SEQUENCES}, {TAIL}, block_table=None",
    "flash_attn_varlen_kvpacked_func": f"q, kv, {SEQUENCES}, {TAIL}",
    "flash_attn_varlen_qkvpacked_func": f"qkv, cu_seqlens, max_seqlen, {TAIL}",
}
LENGTHS_Q, LENGTHS_K = [5, 0, 17, 1], [9, 3, 17, 0]


def cu_seqlens(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32, device=DEVICE)


def packed_arguments() -> tuple:
    """q, k, v laid end to end by LENGTHS_*, and the four arguments that say so."""
    q, k, v = randn(23, 4, 32, seed=1), randn(29, 2, 32, seed=2), randn(29, 2, 32, seed=3)
    return q, k, v, cu_seqlens(LENGTHS_Q), cu_seqlens(LENGTHS_K), 17, 17


@pytest.mark.parametrize("name", UPSTREAM)
def test_signatures_are_upstreams(name):
    parameters = inspect.signature(getattr(flashattn_rocm, name)).parameters.values()
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    text = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in positional)
    assert text == UPSTREAM[name]
    assert all(p.default is None for p in parameters if p.kind is p.KEYWORD_ONLY)


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"causal": True, "softmax_scale": 0.3},
        {"window_size": (3, 1), "softcap": 5.0},
        {"alibi_slopes": torch.tensor([0.5, 0.25], device=DEVICE)},
    ],
)
def test_packed_forms_are_views(keywords):
    qkv = randn(2, 13, 3, 2, 32, seed=4)
    want, want_lse, _ = flash_attn_func(*qkv.unbind(2), **keywords, return_attn_probs=True)
    q, kv = qkv[:, :, 0], qkv[:, :, 1:]
    for out, lse, probs in (
        flash_attn_qkvpacked_func(qkv, **keywords, return_attn_probs=True),
        flash_attn_kvpacked_func(q, kv, **keywords, return_attn_probs=True),
    ):
        assert torch.equal(out, want)
        assert torch.equal(lse, want_lse)
        assert probs.shape == (0,)


@pytest.mark.parametrize(
    "keywords", [{}, {"causal": True}, {"window_size": (2, 0)}, {"softcap": 3.0, "causal": True}]
)
def test_varlen_is_each_sequence_by_itself(keywords):
    q, k, v, *sequences = packed_arguments()
    out, lse, _ = flash_attn_varlen_func(q, k, v, *sequences, **keywords, return_attn_probs=True)
    parts = zip(q.split(LENGTHS_Q), k.split(LENGTHS_K), v.split(LENGTHS_K), strict=True)
    each = [flash_attn_func(*(t[None] for t in part), **keywords, return_attn_probs=True) for part in parts]
    assert (out - torch.cat([one[0][0] for one in each])).abs().max() < 2e-3
    finite = lse.isfinite()
    want = torch.cat([one[1][0] for one in each], -1)
    assert torch.equal(finite, want.isfinite())
    assert (lse - want)[finite].abs().max() < 1e-4


def test_varlen_packed_forms():
    q, k, v, cu_q, cu_k, *longest = packed_arguments()
    want = flash_attn_varlen_func(q, k, v, cu_q, cu_k, *longest, causal=True)
    kv = torch.stack([k, v], 1)
    assert torch.equal(flash_attn_varlen_kvpacked_func(q, kv, cu_q, cu_k, *longest, causal=True), want)
    want = flash_attn_varlen_func(k, k, v, cu_k, cu_k, *longest, causal=True)
    qkv = torch.stack([k, k, v], 1)
    assert torch.equal(flash_attn_varlen_qkvpacked_func(qkv, cu_k, 17, causal=True), want)


def test_seqused_k_cuts_each_sequence():
    q, k, v, cu_q, cu_k, *longest = packed_arguments()
    used = [4, 3, 11, 0]
    seqused_k = torch.tensor(used, dtype=torch.int32, device=DEVICE)
    out = flash_attn_varlen_func(q, k, v, cu_q, cu_k, *longest, causal=True, seqused_k=seqused_k)
    kept = torch.cat([torch.arange(begin, begin + n) for begin, n in zip(cu_k.tolist(), used, strict=False)])
    want = flash_attn_varlen_func(q, k[kept], v[kept], cu_q, cu_seqlens(used), *longest, causal=True)
    assert (out - want).abs().max() < 2e-3


@pytest.mark.parametrize(("left", "right"), [(3, 2), (0, 0), (-1, 0), (2, -1), (-7, -2)])
def test_window_is_that_mask(left, right):
    q, k, v = make_qkv(seqlen_q=9, seqlen_k=12)
    distance = torch.arange(12)[None, :] - torch.arange(9)[:, None] - 3
    seen = (distance >= -left) if left >= 0 else torch.ones(9, 12, dtype=torch.bool)
    seen = (seen & (distance <= right) if right >= 0 else seen).to(DEVICE)
    out = flash_attn_func(q, k, v, window_size=(left, right))
    assert (out - flash_attn_func(q, k, v, attn_bias=seen)).abs().max() < 2e-3


def test_a_low_softcap_makes_all_scores_equal():
    q, k, v = make_qkv(seqlen_q=3, seqlen_k=9)
    out = flash_attn_func(q * 50, k, v, softcap=1e-4)
    assert (out - v.float().mean(1, keepdim=True)).abs().max() < 2e-3


def test_a_steep_alibi_slope_leaves_the_own_position():
    q, k, v = make_qkv(seqlen_q=3, seqlen_k=9)
    slopes = torch.tensor([1e4, 0.0], device=DEVICE)
    out = flash_attn_func(q, k, v, alibi_slopes=slopes)
    assert torch.equal(out[:, :, 0], v[:, 6:, 0])
    assert torch.equal(out[:, :, 1], flash_attn_func(q, k, v)[:, :, 1])


@pytest.mark.parametrize("window", [[4, 0], (np.int64(4), np.int32(0)), torch.tensor([4, 0]), (4, False)])
def test_forms_of_a_window(window):
    qkv = make_qkv()
    assert torch.equal(flash_attn_func(*qkv, window_size=window), flash_attn_func(*qkv, window_size=(4, 0)))


def test_max_seqlen_may_be_a_tensor():
    q, k, v, cu_q, cu_k, *longest = packed_arguments()
    tensors = (torch.tensor(n, dtype=torch.int32) for n in longest)
    want = flash_attn_varlen_func(q, k, v, cu_q, cu_k, *longest)
    assert torch.equal(flash_attn_varlen_func(q, k, v, cu_q, cu_k, *tensors), want)


def test_sinks_take_their_share():
    q, k, v = make_qkv(seqlen_q=7, heads_q=2)
    sinks = torch.tensor([0.5, -1.0], device=DEVICE)
    out, lse, _ = flash_attn_func(q, k, v, return_attn_probs=True)
    share = torch.sigmoid(lse - sinks[:, None]).mT[..., None]
    assert (flash_attn_func(q, k, v, sinks=sinks) - out.float() * share).abs().max() < 2e-3


def test_bias_and_mask_say_the_same():
    q, k, v = make_qkv(seqlen_q=9, seqlen_k=11)
    kept = torch.rand(9, 11, generator=torch.Generator().manual_seed(5)).to(DEVICE) < 0.7
    bias = torch.zeros(9, 11, device=DEVICE).masked_fill(~kept, -torch.inf)
    mask = flash_attn_func(q, k, v, attn_bias=kept)
    assert torch.equal(flash_attn_func(q, k, v, attn_bias=bias), mask)
    assert not torch.equal(flash_attn_func(q, k, v), mask)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: flash_attn_qkvpacked_func(t(2, 5, 2, 2, 8)), r"qkv must have shape .*3, num_heads"),
        (lambda t: flash_attn_qkvpacked_func(t(5, 3, 2, 8)), r"qkv must have shape \(batch_size, seqlen, 3"),
        (
            lambda t: flash_attn_kvpacked_func(t(2, 5, 2, 8), t(2, 5, 3, 2, 8)),
            r"kv must have shape .* 2, num",
        ),
        (
            lambda t: flash_attn_varlen_kvpacked_func(
                t(5, 2, 8), t(5, 3, 2, 8), *[cu_seqlens([5])] * 2, 5, 5
            ),
            r"kv must have shape \(total_k, 2",
        ),
        (
            lambda t: flash_attn_varlen_qkvpacked_func(t(2, 5, 3, 2, 8), cu_seqlens([5]), 5),
            r"qkv must have shape \(total, 3",
        ),
    ],
)
def test_packed_shapes(call, text):
    with pytest.raises(ValueError, match=text):
        call(lambda *shape: randn(*shape, seed=6))


@pytest.mark.parametrize("function", [flash_attn_qkvpacked_func, flash_attn_varlen_qkvpacked_func])
def test_no_probability_is_refused(function):
    dense = function is flash_attn_qkvpacked_func
    arguments = (randn(1, 5, 3, 2, 8, seed=7),) if dense else (randn(5, 3, 2, 8, seed=7), cu_seqlens([5]), 5)
    with pytest.raises(ValueError, match=r"dropout_p must be in \[0, 1\); got -1"):
        function(*arguments, dropout_p=-1)
