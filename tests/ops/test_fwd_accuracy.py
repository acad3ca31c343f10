"""The forward against float64, over head dims, masks, lengths, heads and scales."""

import pytest

from flashattn_rocm import flash_attn_func
from tests.kit.cases import HEAD_DIMS, SEQLENS, UNEQUAL_SEQLENS, make_qkv
from tests.kit.tolerance import assert_contract

MASKS = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
DIMS = pytest.mark.parametrize("head_dim", HEAD_DIMS)


@DIMS
@MASKS
@pytest.mark.parametrize("seqlen", SEQLENS)
def test_self_attention(head_dim, causal, seqlen):
    assert_contract(*make_qkv(seqlen_q=seqlen, heads_q=1, head_dim=head_dim), causal=causal)


@DIMS
@MASKS
@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), UNEQUAL_SEQLENS)
def test_unequal_lengths(head_dim, causal, seqlen_q, seqlen_k):
    assert_contract(*make_qkv(1, seqlen_q, seqlen_k, 1, head_dim=head_dim, seed=1), causal=causal)


@DIMS
@pytest.mark.parametrize("length", [*range(1, 6), 15, 16, 17, 31, 32, 33, 95, 96, 97, 128, 129])
def test_lengths_around_the_tiles(head_dim, length):
    assert_contract(*make_qkv(1, length, length, 1, head_dim=head_dim, seed=2), causal=True)


@MASKS
@pytest.mark.parametrize(("heads_q", "heads_kv"), [(4, 4), (6, 3), (9, 3), (7, 1), (5, 5), (8, 2)])
def test_grouped_heads(causal, heads_q, heads_kv):
    assert_contract(*make_qkv(2, 33, 65, heads_q, heads_kv, head_dim=64, seed=3), causal=causal)


@pytest.mark.parametrize("scale", [0.0, -0.5, -1.0, 1e-30, 1e-3, 1.0, 3.0])
def test_softmax_scale(scale):
    assert_contract(*make_qkv(1, 40, 70, 2, head_dim=32, seed=4), softmax_scale=scale, causal=True)


def test_scale_none_is_the_inverse_root_and_not_zero():
    qkv = make_qkv(1, 20, 20, 1, seed=5)
    assert flash_attn_func(*qkv).equal(flash_attn_func(*qkv, softmax_scale=64**-0.5))
    assert not flash_attn_func(*qkv).equal(flash_attn_func(*qkv, softmax_scale=0.0))


def test_batch_items_do_not_depend_on_each_other():
    q, k, v = make_qkv(3, 70, 70, 2, seed=6)
    together = flash_attn_func(q, k, v, causal=True)
    alone = flash_attn_func(q[1:2], k[1:2], v[1:2], causal=True)
    assert together[1:2].equal(alone)


def test_repeated_runs_are_bitwise_equal():
    qkv = make_qkv(2, 130, 97, 4, 2, seed=7)
    first = flash_attn_func(*qkv, causal=True, return_attn_probs=True)
    for _ in range(3):
        again = flash_attn_func(*qkv, causal=True, return_attn_probs=True)
        assert all(a.equal(b) for a, b in zip(first, again, strict=True))


def test_a_call_full_of_nan_leaves_nothing_behind():
    clean = make_qkv(1, 5, 5, 1, head_dim=128, seed=8)
    want = flash_attn_func(*clean)
    flash_attn_func(*(t.new_full((1, 128, 4, 128), float("nan")) for t in clean))
    assert flash_attn_func(*clean).equal(want)


def test_large_batch_folds_over_the_grid():
    q, k, v = make_qkv(1, 1, 1, 1, head_dim=32, seed=9)
    batch = 32769  # one more than grid.y takes
    out = flash_attn_func(*(t.expand(batch, 1, 1, 32) for t in (q, k, v)))
    assert out.equal(v.expand(batch, 1, 1, 32))
