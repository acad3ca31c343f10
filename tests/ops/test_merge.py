"""Attention over two sets of keys, merged, is attention over both."""

import math

import pytest
import torch
from torch.library import opcheck

from flashattn_rocm import flash_attn_func, merge_states
from tests.kit.cases import make_qkv, randn
from tests.kit.poison import embed


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


def random_states(dtype=torch.float32, shape=(2, 5, 3, 40)):
    """Two sides; log-sum-exps from far below to far above each other."""
    batch, seqlen, heads, _ = shape
    for seed in (1, 2):
        lse = randn(batch, heads, seqlen, seed=10 * seed, dtype=torch.float32) * 3
        yield randn(*shape, seed=seed, dtype=dtype), lse


def merged_in_float64(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a.double(), lse_b.double())
    weights = ((side.double() - lse).exp().mT[..., None] for side in (lse_a, lse_b))
    return sum(weight * out.double() for weight, out in zip(weights, (out_a, out_b), strict=True)), lse


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("head_dim", [1, 40, 64, 129, 512])
def test_against_float64(dtype, head_dim):
    (out_a, lse_a), (out_b, lse_b) = random_states(dtype, (2, 5, 3, head_dim))
    out, lse = merge_states(out_a, lse_a, out_b, lse_b)
    want, want_lse = merged_in_float64(out_a, lse_a, out_b, lse_b)
    assert out.dtype == dtype
    rounding = torch.finfo(dtype).eps / 2 + 2**-22
    assert ((out.double() - want).abs() <= rounding * out_a.abs().max().double() * 2).all()
    assert (lse.double() - want_lse).abs().max() < 1e-5


@pytest.mark.parametrize("pad", [8, 2, 1])
def test_any_strides(pad):
    (out_a, lse_a), (out_b, lse_b) = random_states(torch.float16, (2, 5, 3, 64))
    want = merge_states(out_a, lse_a, out_b, lse_b)
    sides = [embed(out, (0, 2, 1, 3), pad, offset=pad) for out in (out_a, out_b)]
    flashinfer = [lse.mT.contiguous().mT for lse in (lse_a, lse_b)]  # (total, heads) in memory
    got = merge_states(sides[0].view, flashinfer[0], sides[1].view, flashinfer[1])
    assert got[0].equal(want[0])
    assert got[1].equal(want[1])
    for side in sides:
        side.assert_unchanged()


@pytest.mark.parametrize("none", [-math.inf, math.inf])
def test_a_side_without_keys_may_hold_anything(none):
    (out_a, lse_a), (out_b, lse_b) = random_states(torch.float16)
    out_b.fill_(math.nan)
    lse_b.fill_(none)
    for sides in ((out_a, lse_a, out_b, lse_b), (out_b, lse_b, out_a, lse_a)):
        out, lse = merge_states(*sides)
        assert out.equal(out_a)
        assert lse.equal(lse_a)
    out, lse = merge_states(out_b, lse_b, out_b, lse_b)
    assert (out == 0).all()
    assert (lse == -math.inf).all()


def test_nan_stays_in_its_row():
    (out_a, lse_a), (out_b, lse_b) = random_states()
    want = merge_states(out_a, lse_a, out_b, lse_b)
    for broken in (lse_a, lse_b):
        broken[0, 1, 2] = math.nan
        out, lse = merge_states(out_a, lse_a, out_b, lse_b)
        assert out[0, 2, 1].isnan().all()
        assert lse[0, 1, 2].isnan()
        assert int(out.isnan().sum()) == out.shape[-1]
        assert out[1].equal(want[0][1])
        broken[0, 1, 2] = 0.0


def test_nothing_to_merge():
    out, lse = merge_states(*(torch.zeros(shape) for shape in ((2, 0, 3, 8), (2, 3, 0)) * 2))
    assert out.shape == (2, 0, 3, 8)
    assert lse.shape == (2, 3, 0)


def test_gradients():
    sides = [x.requires_grad_() for side in random_states(shape=(2, 3, 2, 8)) for x in side]
    weights = randn(2, 3, 2, 8, seed=7, dtype=torch.float32), randn(2, 2, 3, seed=8, dtype=torch.float32)

    def loss(results):
        return sum((x * weight).sum() for x, weight in zip(results, weights, strict=True))

    got = torch.autograd.grad(loss(merge_states(*sides)), sides)
    want = torch.autograd.grad(loss(merged_in_float64(*sides)), sides)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_opcheck():
    sides = [x for side in random_states(torch.float16) for x in side]
    opcheck(torch.ops.flashattn_rocm.merge_states, tuple(sides))
    opcheck(torch.ops.flashattn_rocm.merge_states, tuple(x.requires_grad_() for x in sides))


@pytest.mark.parametrize(
    ("index", "change", "error", "text"),
    [
        (0, torch.Tensor.double, TypeError, "out_a has torch.float64"),
        (
            2,
            torch.Tensor.half,
            TypeError,
            "out_a and out_b must have the same dtype, .* out_b has torch.float16",
        ),
        (1, torch.Tensor.double, TypeError, "lse_a must have dtype torch.float32; it has torch.float64"),
        (3, lambda x: x.to("meta"), ValueError, "lse_b must be on the device of out_a, cpu; it is on meta"),
        (2, lambda x: x.mT.contiguous().mT, ValueError, "out_b must have contiguous last dimension"),
    ],
)
def test_refused(index, change, error, text):
    sides = [x for side in random_states() for x in side]
    sides[index] = change(sides[index])
    with pytest.raises(error, match=text):
        merge_states(*sides)
