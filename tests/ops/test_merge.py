"""Attention over two sets of keys, merged, is attention over both."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_func, merge_states
from tests.kit.cases import make_qkv, randn


def attend(q, k, v, **keywords):
    return flash_attn_func(q, k, v, return_attn_probs=True, **keywords)[:2]


@pytest.mark.parametrize("cut", [1, 16, 39])
def test_two_halves_make_the_whole(cut):
    q, k, v = make_qkv(batch=2, heads_q=4, heads_kv=2)
    out, lse = merge_states(*attend(q, k[:, :cut], v[:, :cut]), *attend(q, k[:, cut:], v[:, cut:]))
    want, want_lse = attend(q, k, v)
    assert out.dtype == want.dtype
    assert (out - want).abs().max() < 2e-3
    assert (lse - want_lse).abs().max() < 1e-4


def test_packed_shapes():
    q, k, v = make_qkv(seqlen_q=7)
    a, b = attend(q, k, v), attend(q, k.flip(1), v)
    out, lse = merge_states(a[0][0], a[1][0], b[0][0], b[1][0])
    want, want_lse = merge_states(*a, *b)
    assert torch.equal(out, want[0])
    assert torch.equal(lse, want_lse[0])


def test_rows_without_keys():
    out_a, out_b = randn(1, 3, 1, 4, seed=1), randn(1, 3, 1, 4, seed=2)
    lse_a = torch.tensor([[[-math.inf, 2.0, -math.inf]]])
    lse_b = torch.tensor([[[1.0, -math.inf, -math.inf]]])
    out_a[0, 0], out_a[0, 2], out_b[0, 1:] = 0.0, 0.0, 0.0
    out, lse = merge_states(out_a, lse_a, out_b, lse_b)
    assert torch.equal(out, out_a + out_b)
    assert torch.equal(lse, torch.tensor([[[1.0, 2.0, -math.inf]]]))


def test_scores_far_apart():
    out_a, out_b = torch.ones(1, 2, 1, 4), torch.full((1, 2, 1, 4), 3.0)
    out, lse = merge_states(out_a, torch.tensor([[[1e5, -1e5]]]), out_b, torch.tensor([[[1e5, 1e5]]]))
    assert torch.equal(out[0, :, 0, 0], torch.tensor([2.0, 3.0]))
    assert torch.equal(lse, torch.tensor([[[1e5 + math.log(2), 1e5]]]))


def test_gradient_with_empty_rows_is_finite():
    lse_a = torch.tensor([[[-math.inf, 0.5]]], requires_grad=True)
    out_a = torch.zeros(1, 2, 1, 4, requires_grad=True)
    out, _ = merge_states(out_a, lse_a, torch.zeros(1, 2, 1, 4), torch.tensor([[[-math.inf, 0.5]]]))
    out.sum().backward()
    assert out_a.grad.isfinite().all()
    assert lse_a.grad.isfinite().all()


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("out_a", ((4,), (4,), (4,), (4,))),
        ("lse_a", ((1, 3, 2, 4), (1, 3, 2), (1, 3, 2, 4), (1, 2, 3))),
        ("out_b", ((1, 3, 2, 4), (1, 2, 3), (1, 3, 2, 5), (1, 2, 3))),
        ("lse_b", ((3, 2, 4), (2, 3), (3, 2, 4), (1, 2, 3))),
    ],
)
def test_shapes(name, shapes):
    with pytest.raises(ValueError, match=f"{name} must have"):
        merge_states(*(torch.zeros(shape) for shape in shapes))
