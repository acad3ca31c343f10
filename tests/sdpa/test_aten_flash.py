"""The flash operations of aten, which torch calls by itself."""

import pytest
import torch

import flashattn_rocm
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def switched_on():
    with flashattn_rocm.sdpa(fallback=False):
        yield


def attend(q, k, v, **keywords):
    return flashattn_rocm.flash_attn_func(q, k, v, return_attn_probs=True, **keywords)[:2]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)])  # of the query in memory
@pytest.mark.parametrize("is_causal", [False, True])
def test_sdpa_forward(order, is_causal):
    q, k, v = make_qkv(batch=2, seqlen_q=6, heads_q=4, heads_kv=4, head_dim=16)
    query, key, value = (t.transpose(1, 2) for t in (q, k, v))
    query = query.permute(order).contiguous().permute(order)  # each order is its own inverse
    out, lse, cum_q, cum_k, max_q, max_k, seed, offset, debug = aten._scaled_dot_product_flash_attention(
        query, key, value, 0.0, is_causal, scale=0.4
    )
    want, want_lse = attend(q, k, v, causal=is_causal, softmax_scale=0.4)
    assert torch.equal(out, want.transpose(1, 2))
    assert out.stride() == torch.empty_like(query).stride()
    assert torch.equal(lse, want_lse)
    assert (cum_q, cum_k, max_q, max_k, debug.shape) == (None, None, 6, 6, (0,))
    meta = aten._scaled_dot_product_flash_attention(*(t.to("meta") for t in (query, key, value)))
    if not torch.version.hip:
        assert (seed.shape, seed.dtype, offset.shape) == (meta[6].shape, meta[6].dtype, meta[7].shape)


def test_sdpa_causal_is_aligned_at_the_top_left():
    q, k, v = (randn(1, 2, n, 16, seed=n) for n in (3, 7, 7))
    out, *_ = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
    want, *_ = aten._scaled_dot_product_flash_attention(q, k[:, :, :3], v[:, :, :3], 0.0, True)
    assert (out - want).abs().max() < 2e-3


def test_sdpa_backward():
    q, k, v = (randn(2, 3, 5, 16, seed=s).requires_grad_() for s in range(3))
    weight = randn(2, 3, 5, 16, seed=4)
    out = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[0]
    got = torch.autograd.grad(out, (q, k, v), weight)
    flashattn_rocm.disable_sdpa()
    want = torch.autograd.grad(
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v), weight
    )
    for one, other in zip(got, want, strict=True):
        assert (one.float() - other.float()).abs().max() < 1e-2


def packed():
    cu = torch.tensor([0, 4, 10], dtype=torch.int32, device=DEVICE)
    return (*(randn(10, 2, 16, seed=s) for s in range(3)), cu)


@pytest.mark.parametrize("window", [(None, None), (2, 0)])
def test_packed_forward(window):
    q, k, v, cu = packed()
    options = {"scale": 0.4, "window_size_left": window[0], "window_size_right": window[1]}
    out, lse, *_ = aten._flash_attention_forward(q, k, v, cu, cu, 6, 6, 0.0, True, False, **options)
    bounds = tuple(-1 if bound is None else bound for bound in window)
    want = flashattn_rocm.flash_attn_varlen_func(
        q, k, v, cu, cu, 6, 6, 0.0, 0.4, True, bounds, return_attn_probs=True
    )
    assert torch.equal(out, want[0])
    assert torch.equal(lse, want[1])


def test_dense_forward_is_aligned_at_the_bottom_right():
    q, k, v = make_qkv(seqlen_q=3, seqlen_k=7, head_dim=16)
    out, *_ = aten._flash_attention_forward(q, k, v, None, None, 3, 7, 0.0, True, False)
    assert torch.equal(out, attend(q, k, v, causal=True)[0])


@pytest.mark.skipif(
    not hasattr(aten, "_flash_attention_forward_no_dropout_inplace"), reason="not in this torch"
)
def test_forward_into_a_tensor():
    q, k, v, cu = packed()
    out = torch.empty_like(q)
    lse = aten._flash_attention_forward_no_dropout_inplace(out, q, k, v, cu, cu, 6, 6, 0.0, True, False)
    want = aten._flash_attention_forward(q, k, v, cu, cu, 6, 6, 0.0, True, False)
    assert torch.equal(out, want[0])
    assert torch.equal(lse, want[1])


def test_packed_backward():
    q, k, v, cu = packed()
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    out, *_ = aten._flash_attention_forward(*leaves, cu, cu, 6, 6, 0.0, True, False)
    weight = randn(10, 2, 16, seed=5)
    got = torch.autograd.grad(out, leaves, weight)
    want = torch.autograd.grad(
        flashattn_rocm.flash_attn_varlen_func(*leaves, cu, cu, 6, 6, causal=True), leaves, weight
    )
    for one, other in zip(got, want, strict=True):
        assert torch.equal(one, other)


def test_dropout_gives_its_state():
    q, k, v = (randn(2, 3, 40, 16, seed=s) for s in range(3))
    out, *_, seed, offset, _ = aten._scaled_dot_product_flash_attention(q, k, v, 0.5)
    rng_state = torch.stack((seed, offset)) if torch.version.hip else seed.view(torch.int64)
    by_rows = (t.transpose(1, 2) for t in (q, k, v))
    want, _ = torch.ops.flashattn_rocm.fwd(*by_rows, dropout_p=0.5, rng_state=rng_state)
    assert torch.equal(out, want.transpose(1, 2))
    other, *_, another, _, _ = aten._scaled_dot_product_flash_attention(q, k, v, 0.5)
    assert not torch.equal(out, other)
    assert not torch.equal(seed, another)
    meta = aten._scaled_dot_product_flash_attention(*(t.to("meta") for t in (q, k, v)))
    if not torch.version.hip:
        assert (seed.shape, seed.dtype, offset.shape) == (meta[6].shape, meta[6].dtype, meta[7].shape)


def test_refuses_debug_mask():
    q = randn(1, 2, 3, 16, seed=1)
    with pytest.raises(NotImplementedError, match="return_debug_mask is not served"):
        aten._scaled_dot_product_flash_attention(q, q, q, 0.0, False, True)
