"""scaled_dot_product_attention on the kernels against torch's own."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import flashattn_rocm
from tests.kit.calls import CallRecorder
from tests.kit.cases import randn
from tests.kit.device import DEVICE

TOLERANCE = 3e-3  # two roundings to fp16 of numbers up to about 3


def both(q, k, v, **options):
    """The result of the kernels, which must serve it, and of torch."""
    want = scaled_dot_product_attention(q, k, v, **options)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        got = scaled_dot_product_attention(q, k, v, **options)
    assert counts.served == 1
    return got, want


def assert_same(got, want):
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert (got.float() - want.float()).abs().max() < TOLERANCE


def qkv(*shape_q: int, seqlen_k=None, heads_k=None, dim_v=None):
    shape_k = list(shape_q)
    shape_k[-2] = seqlen_k or shape_q[-2]
    if heads_k:
        shape_k[-3] = heads_k
    shape_v = [*shape_k[:-1], dim_v or shape_q[-1]]
    return randn(*shape_q, seed=1), randn(*shape_k, seed=2), randn(*shape_v, seed=3)


@pytest.mark.parametrize("shape", [(5, 16), (3, 5, 16), (2, 3, 5, 16), (2, 3, 2, 5, 16), (2, 1, 3, 2, 5, 16)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_ranks(shape, is_causal):
    assert_same(*both(*qkv(*shape, seqlen_k=7), is_causal=is_causal))


@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), [(3, 9), (9, 3), (1, 6), (6, 6)])
def test_causal_is_aligned_at_the_top_left(seqlen_q, seqlen_k):
    assert_same(*both(*qkv(1, 2, seqlen_q, 16, seqlen_k=seqlen_k), is_causal=True))


@pytest.mark.parametrize("scale", [None, 0.5, -1.0])
@pytest.mark.parametrize("dim_v", [8, 16, 40])
def test_scale_and_width_of_values(scale, dim_v):
    assert_same(*both(*qkv(2, 2, 5, 16, seqlen_k=7, dim_v=dim_v), scale=scale))


MASKS = [
    (5, 7),
    (1, 7),
    (5, 1),
    (1, 1, 1, 7),
    (2, 1, 1, 7),
    (2, 1, 5, 7),
    (1, 4, 5, 7),
    (2, 4, 5, 7),
    (4, 1, 7),
]


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("kind", [torch.bool, torch.float16, torch.float32])
def test_masks(shape, kind):
    numbers = randn(*shape, seed=4)
    mask = numbers > -0.8 if kind is torch.bool else numbers.to(kind)
    assert_same(*both(*qkv(2, 4, 5, 16, seqlen_k=7), attn_mask=mask))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 7), (2, 1, 1, 5, 7), (3, 1, 5, 7), (1, 3, 1, 1, 7)])
def test_masks_of_five_dimensions(shape):
    assert_same(*both(*qkv(2, 3, 4, 5, 16, seqlen_k=7), attn_mask=randn(*shape, seed=4)))


def test_mask_that_hides_a_whole_row():
    mask = torch.ones(5, 7, dtype=torch.bool, device=DEVICE)
    mask[2] = False
    got, want = both(*qkv(1, 2, 5, 16, seqlen_k=7), attn_mask=mask)
    assert_same(got, want)
    assert (got[:, :, 2] == 0).all()


@pytest.mark.parametrize("heads_k", [1, 2, 4])
def test_groups(heads_k):
    assert_same(*both(*qkv(2, 4, 5, 16, heads_k=heads_k), enable_gqa=True))


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 4, 5, 16), (2, 1, 7, 16), (2, 1, 7, 16)),
        ((2, 4, 5, 16), (1, 4, 7, 16), (1, 4, 7, 16)),
        ((1, 1, 5, 16), (2, 4, 7, 16), (2, 4, 7, 16)),
        ((2, 4, 5, 16), (2, 1, 7, 16), (2, 4, 7, 16)),
        ((2, 4, 5, 16), (4, 7, 16), (7, 16)),
        ((3, 1, 4, 5, 16), (2, 4, 7, 16), (3, 1, 1, 7, 16)),
    ],
)
def test_dimensions_that_broadcast(shapes):
    assert_same(*both(*(randn(*shape, seed=seed) for seed, shape in enumerate(shapes))))


def test_empty_batch():
    got, want = both(*qkv(0, 2, 5, 16))
    assert got.shape == want.shape


def test_views_reach_the_kernel_without_copies():
    packed, mask = randn(2, 6, 3, 4, 16, seed=5), randn(1, 6, 6, seed=6).mT[:, None]
    q, k, v = packed.permute(2, 0, 3, 1, 4)
    with flashattn_rocm.sdpa(fallback=False), torch.no_grad(), CallRecorder() as recorder:
        scaled_dot_product_attention(q, k, v, attn_mask=mask)
        # Batch and frames of q cannot be one dimension; each frame is a launch of its own on the same memory.
        scaled_dot_product_attention(*(t.unflatten(0, (2, 1)).expand(2, 3, 4, 6, 16) for t in (q, k, v)))
    storages = {t.untyped_storage().data_ptr() for args, _ in recorder.calls for t in args[:3]}
    assert storages == {packed.untyped_storage().data_ptr()}
    (_, keywords), *frames = recorder.calls
    assert keywords["attn_bias"].data_ptr() == mask.data_ptr()
    assert keywords["attn_bias"].stride() == mask.stride()
    assert len(frames) == 2


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"enable_gqa": True}])
def test_gradients(options):
    tensors = qkv(2, 4, 5, 16, seqlen_k=7, heads_k=2 if options.get("enable_gqa") else None)
    weight = randn(2, 4, 5, 16, seed=7)

    def gradients():
        leaves = [t.clone().requires_grad_() for t in tensors]
        (scaled_dot_product_attention(*leaves, **options) * weight).sum().backward()
        return [leaf.grad for leaf in leaves]

    want = gradients()
    flashattn_rocm.enable_sdpa()
    for got, one in zip(gradients(), want, strict=True):
        assert (got.float() - one.float()).abs().max() < 4 * TOLERANCE


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_dropout(rank):
    q, k, v = (randn(*(1, 2, 2)[5 - rank :], 40, 32, seed=s) for s in range(3))
    with flashattn_rocm.sdpa(fallback=False):
        torch.manual_seed(2)
        out = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        torch.manual_seed(2)
        assert scaled_dot_product_attention(q, k, v, dropout_p=0.5).equal(out)
        ones = torch.ones_like(v)
        sums = scaled_dot_product_attention(q, k, ones, dropout_p=0.5)
    # A row keeps about half of the weight of some 20 keys that count: 1 with a standard deviation of 0.2, and
    # the mean of the 80 rows or more 1 with one of 0.03.
    assert abs(sums.mean() - 1) < 6 * 0.03
    assert 0.1 < sums.std() < 0.4


def test_gradient_of_an_added_mask():
    tensors = qkv(2, 4, 5, 16, seqlen_k=7)
    mask, weight = randn(4, 5, 7, seed=8), randn(2, 4, 5, 16, seed=7)

    def gradient():
        leaf = mask.clone().requires_grad_()
        (scaled_dot_product_attention(*tensors, attn_mask=leaf) * weight).sum().backward()
        return leaf.grad

    want = gradient()
    with flashattn_rocm.sdpa(fallback=False):
        got = gradient()
    assert (got.float() - want.float()).abs().max() < 4 * TOLERANCE
