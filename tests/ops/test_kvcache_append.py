"""Appending to a cache: where it writes, what it leaves alone, and rotary embedding."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_with_kvcache
from flashattn_rocm.rotary import apply_rotary
from tests.kit.kvcache import Cache, assert_close_to_reference, randn

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])


def appended(cache, k, v):
    """Keys and values of each sequence with the new ones behind them."""
    rows = [cache.rows(b) for b in range(len(cache.seqlens))]
    return [(torch.cat([a, k[b]]), torch.cat([c, v[b]])) for b, (a, c) in enumerate(rows)]


def append_and_check(cache, q, k, v, **options):
    want = appended(cache, k, v)
    for b, n in enumerate(cache.seqlens):  # pages for the new rows
        if cache.block_table is not None:
            page = cache.k.shape[1]
            taken = set(cache.block_table[cache.block_table < len(cache.k)].tolist())
            free = iter(sorted(set(range(len(cache.k))) - taken))
            for column in range(-(-n // page), -(-(n + k.shape[1]) // page)):
                cache.block_table[b, column] = next(free)
    before = cache.k.clone(), cache.v.clone()
    out, lse = flash_attn_with_kvcache(
        q, cache.k, cache.v, k, v, **cache.indices, return_softmax_lse=True, **options
    )
    cache.seqlens = [n + k.shape[1] for n in cache.seqlens]
    for b, (keys, values) in enumerate(want):
        assert cache.rows(b)[0].equal(keys)
        assert cache.rows(b)[1].equal(values)
    changed = sum(
        int((new.view(torch.int16) != old.view(torch.int16)).sum())
        for new, old in zip((cache.k, cache.v), before, strict=False)
    )
    assert changed <= k.numel() + v.numel()  # nothing else was written
    assert_close_to_reference(q, want, out, lse, **options)


@DTYPES
@pytest.mark.parametrize("page_size", [None, 16, 48])
@pytest.mark.parametrize("seqlen_new", [1, 3, 20])
def test_append(dtype, page_size, seqlen_new):
    spare = {"spare_columns": 3} if page_size else {"spare": 30}
    cache = Cache.of([0, 15, 100], page_size, dtype=dtype, **spare)
    k, v = (randn(3, seqlen_new, 2, 64, dtype=dtype, seed=s) for s in (8, 9))
    append_and_check(cache, randn(3, 2, 4, 64, dtype=dtype), k, v, causal=True)


def test_append_to_other_items_of_the_cache():
    cache = Cache.dense([9, 30], items=4, batch_idx=[2, 0])
    k, v = (randn(2, 2, 2, 64, seed=s) for s in (8, 9))
    append_and_check(cache, randn(2, 1, 4, 64), k, v)


@pytest.mark.parametrize("head_dim", [59, 100, 256])
def test_append_of_odd_rows(head_dim):
    cache = Cache.dense([9, 30], head_dim=head_dim)
    k, v = (randn(2, 2, 2, head_dim, seed=s) for s in (8, 9))
    append_and_check(cache, randn(2, 1, 4, head_dim), k, v)


def test_fills_the_cache_to_its_last_row():
    cache = Cache.dense([20], spare=3)
    k, v = (randn(1, 3, 2, 64, seed=s) for s in (8, 9))
    append_and_check(cache, randn(1, 1, 4, 64), k, v)


@pytest.mark.parametrize("seqlen_new", [4, 50])
def test_refuses_more_than_the_cache_holds_and_writes_nothing(seqlen_new):
    cache = Cache.dense([20, 3], spare=3)
    before = cache.k.clone()
    new = randn(2, seqlen_new, 2, 64)
    with pytest.raises(ValueError, match=r"cache_seqlens\[0\]=20 with .* capacity is 23"):
        flash_attn_with_kvcache(randn(2, 1, 4, 64), cache.k, cache.v, new, new, **cache.indices)
    assert cache.k.view(torch.int16).equal(before.view(torch.int16))


@DTYPES
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("options", [{"causal": True}, {}, {"window_size": (20, 4)}], ids=str)
@pytest.mark.parametrize("rotary_dim", [16, 64])
@pytest.mark.parametrize("page_size", [None, 32])
def test_rotary(dtype, interleaved, options, rotary_dim, page_size):
    spare = {"spare_columns": 2} if page_size else {"spare": 12}
    cache = Cache.of([0, 40], page_size, dtype=dtype, **spare)
    if page_size:
        cache.block_table[0, 0], cache.block_table[1, 1] = 0, cache.block_table[1, 1]
        free = next(i for i in range(len(cache.k)) if i not in cache.block_table[1].tolist())
        cache.block_table[0, 0] = free
    q, k, v = randn(2, 3, 4, 64, dtype=dtype), *(randn(2, 3, 2, 64, dtype=dtype, seed=s) for s in (8, 9))
    angles = torch.rand(128, rotary_dim // 2, generator=torch.Generator().manual_seed(3)) * 2 * math.pi
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    offsets = torch.tensor(cache.seqlens)

    def turned(x, offset):
        return apply_rotary(x, cos, sin, offset, interleaved=interleaved)

    turned_k = turned(k, offsets)
    if options:
        turned_q = turned(q, offsets)
    else:  # without a mask upstream turns all queries by the first position
        rows = q.transpose(0, 1).flatten(0, 1)[:, None]
        turned_q = turned(rows, offsets.repeat(3)).reshape(3, 2, 4, 64).transpose(0, 1)
    want = appended(cache, turned_k, v)
    out, lse = flash_attn_with_kvcache(
        q,
        cache.k,
        cache.v,
        k,
        v,
        cos,
        sin,
        **cache.indices,
        rotary_interleaved=interleaved,
        return_softmax_lse=True,
        **options,
    )
    cache.seqlens = [n + 3 for n in cache.seqlens]
    for b in range(2):
        keys, values = cache.rows(b)
        torch.testing.assert_close(keys, want[b][0], rtol=torch.finfo(dtype).eps, atol=1e-3)
        assert values.equal(want[b][1])
    seen = [cache.rows(b) for b in range(2)]
    assert_close_to_reference(turned_q, seen, out, lse, **options)


def test_steps_equal_a_full_pass():
    from flashattn_rocm import flash_attn_func

    q, k, v = (randn(1, 20, heads, 64, seed=heads) for heads in (4, 2, 2))
    cache_k, cache_v = (torch.full((1, 20, 2, 64), math.nan, dtype=torch.float16) for _ in range(2))
    steps = [
        flash_attn_with_kvcache(
            q[:, t : t + 1], cache_k, cache_v, k[:, t : t + 1], v[:, t : t + 1], cache_seqlens=t, causal=True
        )
        for t in range(20)
    ]
    assert cache_k.equal(k)
    assert cache_v.equal(v)
    torch.testing.assert_close(
        torch.cat(steps, 1), flash_attn_func(q, k, v, causal=True), rtol=2e-3, atol=2e-3
    )
