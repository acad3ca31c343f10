"""memory_efficient_attention against torch; bias objects as xformers has them."""

from types import SimpleNamespace

import pytest
import torch

from flashattn_rocm.integrations.xformers import memory_efficient_attention
from tests.kit.calls import CallRecorder
from tests.kit.cases import randn
from tests.kit.device import DEVICE


def bias_object(kind: str, **attributes: object):
    """xformers' classes are told by their names; what is read of them is the same in all its releases."""
    return type(kind, (SimpleNamespace,), {})(**attributes)


def by_torch(q, k, v, **options):
    split = (t.transpose(1, 2) for t in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*split, **options).transpose(1, 2)


def qkv(seqlen_k=7):
    return randn(2, 9, 4, 16, seed=1), randn(2, seqlen_k, 4, 16, seed=2), randn(2, seqlen_k, 4, 16, seed=3)


@pytest.mark.parametrize("scale", [None, 0.4])
def test_dense(scale):
    q, k, v = qkv()
    assert (
        memory_efficient_attention(q, k, v, scale=scale) - by_torch(q, k, v, scale=scale)
    ).abs().max() < 3e-3
    got = memory_efficient_attention(q[:, :, 0], k[:, :, 0], v[:, :, 0], scale=scale)
    assert (got - by_torch(q, k, v, scale=scale)[:, :, 0]).abs().max() < 3e-3


@pytest.mark.parametrize("shape", [(2, 4, 9, 7), (1, 1, 9, 7), (9, 7)])
def test_tensor_bias(shape):
    q, k, v = qkv()
    bias = randn(*shape, seed=4)
    got = memory_efficient_attention(q, k, v, bias)
    assert (got - by_torch(q, k, v, attn_mask=bias)).abs().max() < 3e-3


@pytest.mark.parametrize("shared", [False, True])
def test_groups_of_five_dimensions(shared):
    q, bias = randn(2, 9, 2, 3, 16, seed=1), randn(2, 2, 3, 9, 7, seed=4)
    k, v = (randn(2, 7, 2, 1 if shared else 3, 16, seed=s).expand(2, 7, 2, 3, 16) for s in (2, 3))
    want = by_torch(*(t.flatten(2, 3) for t in (q, k, v)), attn_mask=bias.flatten(1, 2))
    with CallRecorder() as recorder:
        got = memory_efficient_attention(q, k, v, bias)
    assert (got - want.unflatten(2, (2, 3))).abs().max() < 3e-3
    assert recorder.calls[0][0][1].shape[2] == (2 if shared else 6)


@pytest.mark.parametrize("seqlen_k", [5, 9, 12])
def test_triangles(seqlen_k):
    q, k, v = qkv(seqlen_k)
    got = memory_efficient_attention(q, k, v, bias_object("LowerTriangularMask"))
    assert (got - by_torch(q, k, v, is_causal=True)).abs().max() < 3e-3
    seen = torch.ones(9, seqlen_k, dtype=torch.bool, device=DEVICE).tril(seqlen_k - 9)
    got = memory_efficient_attention(q, k, v, bias_object("LowerTriangularFromBottomRightMask"))
    assert (got - by_torch(q, k, v, attn_mask=seen)).abs().max() < 3e-3


def lengths(*numbers: int) -> SimpleNamespace:
    starts = torch.tensor([0, *torch.tensor(numbers).cumsum(0)], dtype=torch.int32, device=DEVICE)
    return SimpleNamespace(seqstart=starts, max_seqlen=max(numbers))


@pytest.mark.parametrize(
    ("kind", "shift"),
    [
        ("BlockDiagonalMask", None),
        ("BlockDiagonalCausalMask", lambda n_q, n_k: 0),
        ("BlockDiagonalCausalFromBottomRightMask", lambda n_q, n_k: n_k - n_q),
    ],
)
def test_blocks(kind, shift):
    counts_q, counts_k = (4, 5), (6, 5)
    q, k, v = randn(1, 9, 4, 16, seed=1), randn(1, 11, 4, 16, seed=2), randn(1, 11, 4, 16, seed=3)
    blocks = [torch.ones(*counts, dtype=torch.bool) for counts in zip(counts_q, counts_k, strict=True)]
    seen = (
        torch.block_diag(*(b if shift is None else b.tril(shift(*b.shape)) for b in blocks)).bool().to(DEVICE)
    )
    bias = bias_object(kind, q_seqinfo=lengths(*counts_q), k_seqinfo=lengths(*counts_k))
    got = memory_efficient_attention(q, k, v, bias)
    assert (got - by_torch(q, k, v, attn_mask=seen)).abs().max() < 3e-3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"op": "cutlass"}, "op='cutlass' is not served"),
        ({"attn_bias": bias_object("PagedBlockDiagonalPaddedKeysMask")}, "type PagedBlock.* is not served"),
    ],
)
def test_refuses(options, text):
    with pytest.raises(NotImplementedError, match=text):
        memory_efficient_attention(*qkv(), **options)
