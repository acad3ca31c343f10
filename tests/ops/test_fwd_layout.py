"""Strides, alignment and what lies around the inputs."""

import pytest
import torch

from flashattn_rocm import flash_attn_func
from tests.kit.cases import HEAD_DIMS, make_qkv, randn
from tests.kit.poison import embed
from tests.kit.tolerance import assert_contract

BSHD, BHSD = (0, 1, 2, 3), (0, 2, 1, 3)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(
    ("order", "pad", "offset"), [(BSHD, 8, 16), (BHSD, 8, 8), (BSHD, 3, 1), (BHSD, 1, 7)]
)
def test_poison_around_inputs_is_not_read(head_dim, causal, order, pad, offset):
    tensors = make_qkv(2, 21, 35, 2, head_dim=head_dim, seed=20)
    poisoned = [embed(tensor, order, pad, offset) for tensor in tensors]
    assert_contract(*(each.view for each in poisoned), causal=causal)
    for each in poisoned:
        each.assert_unchanged()


@pytest.mark.parametrize("unaligned", ["q", "k", "v"])
def test_alignment_is_judged_by_tensor(unaligned):
    tensors = make_qkv(1, 40, 40, 2, seed=21)._asdict()
    tensors[unaligned] = embed(tensors[unaligned], pad=1, offset=1).view
    assert_contract(**tensors)


@pytest.mark.parametrize("offset", range(8))
def test_every_base_alignment(offset):
    tensors = make_qkv(1, 9, 9, 1, head_dim=32, seed=22)
    assert_contract(*(embed(tensor, pad=8, offset=offset).view for tensor in tensors))


# 4-byte steps allow the 16-byte path, which may cross no row; 2-byte steps do not.
@pytest.mark.parametrize("pad", [1, 2, 6])
@pytest.mark.parametrize("head_dim", [8, 40, 72, 96, 104, 120])
def test_head_dims_that_a_tile_pads(head_dim, pad):
    poisoned = [embed(x, pad=pad, offset=2) for x in make_qkv(1, 70, 90, 2, 1, head_dim, seed=28)]
    assert_contract(*(each.view for each in poisoned), causal=True)
    for each in poisoned:
        each.assert_unchanged()


@pytest.mark.parametrize("head_dim", [1, 7, 33, 60, 127])
def test_head_dims_that_are_no_multiple_of_8(head_dim):
    assert_contract(*make_qkv(1, 30, 50, 2, 1, head_dim, seed=29))


def test_k_and_v_have_their_own_strides():
    q, wide, flat = (randn(1, n, 2, 32, seed=s) for n, s in ((40, 23), (80, 24), (40, 25)))
    assert_contract(q, wide[:, ::2], flat)
    assert_contract(q, flat, wide[:, 1::2], causal=True)


@pytest.mark.parametrize("seqlen_k", [33, 34])
def test_broadcast_keys(seqlen_k):
    q = randn(2, 8, 4, 64, seed=26)
    k, v = (randn(1, seqlen_k, 1, 64, seed=s).expand(2, seqlen_k, 4, 64) for s in (27, 28))
    assert flash_attn_func(q, k, v).equal(flash_attn_func(q, k.contiguous(), v.contiguous()))


def test_broadcast_queries():
    q = randn(1, 1, 1, 64, seed=29).expand(2, 8, 4, 64)
    _, k, v = make_qkv(2, 8, 33, 4, seed=30)
    out = flash_attn_func(q, k, v)
    assert out.equal(flash_attn_func(q.contiguous(), k, v))
    assert out.stride(-1) == 1


@pytest.mark.parametrize("shape", [(2, 30, 3, 4, 64), (2, 30, 4, 3, 64)], ids=["qkv-packed", "head-packed"])
def test_packed_views(shape):
    packed = randn(*shape, seed=31)
    q, k, v = packed.unbind(shape.index(3))
    want = flash_attn_func(q.contiguous(), k.contiguous(), v.contiguous(), causal=True)
    assert flash_attn_func(q, k, v, causal=True).equal(want)


def test_one_tensor_as_all_three():
    q = randn(1, 50, 2, 64, seed=32)
    assert flash_attn_func(q, q, q).equal(flash_attn_func(q, q.clone(), q.clone()))


def test_transposed_inputs_give_the_layout_of_q():
    q, k, v = (randn(2, 2, 33, 64, seed=s).transpose(1, 2) for s in (33, 34, 35))
    out, _ = assert_contract(q, k, v)
    assert out.stride() == q.stride()


def test_last_dimension_that_is_not_contiguous_is_copied():
    q, k, v = (randn(1, 20, 2, 128, seed=s)[..., ::2] for s in (36, 37, 38))
    want = flash_attn_func(q.contiguous(), k.contiguous(), v.contiguous())
    assert flash_attn_func(q, k, v).equal(want)
    with pytest.raises(ValueError, match="contiguous last dimension: q has stride 2"):
        torch.ops.flashattn_rocm.fwd(q, k, v)


def test_strides_of_size_one_dimensions_are_not_used():
    q, k, v = make_qkv(1, 1, 1, 1, seed=39)
    odd = [t.as_strided((1, 1, 1, 64), (7, 13, 3, 1)) for t in (q, k, v)]
    assert flash_attn_func(*odd).equal(v)


def test_large_strides_need_64_bits():
    rows, row_stride = 3, 2**30 + 8  # bytes to the last row: 4 GiB and more
    try:
        storage = torch.empty(row_stride * (rows - 1) + 32, dtype=torch.float16)
    except RuntimeError:
        pytest.skip("this machine cannot reserve 4.3 GB of address space")
    k = storage.as_strided((1, rows, 1, 32), (0, row_stride, 32, 1))
    q, values, v = make_qkv(1, 2, rows, 1, head_dim=32, seed=40)
    k.copy_(values)
    assert flash_attn_func(q, k, v).equal(flash_attn_func(q, values, v))


# Rows 4 KiB apart and many query blocks: the grid takes several heads in turns (core/grid.h).
@pytest.mark.parametrize(("heads", "heads_kv"), [(8, 8), (6, 6), (10, 5)])
def test_heads_take_turns(heads, heads_kv):
    q = randn(1, 2700, heads, 64, seed=30)
    k, v = (randn(1, 40, 32, 64, seed=s)[:, :, :heads_kv] for s in (31, 32))
    assert k.stride(1) * k.element_size() == 4096
    assert_contract(q, k, v)
