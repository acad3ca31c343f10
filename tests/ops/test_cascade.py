"""Attention over a shared prefix and what each sequence has behind it is attention over both."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_with_kvcache, flash_attn_with_shared_prefix
from tests.kit.kvcache import Cache, assert_close_to_reference, randn

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])


def prefix_of(length, head_dim=64, dtype=torch.float16):
    return tuple(randn(length, 2, head_dim, dtype=dtype, seed=seed) for seed in (20, 21))


def check(q, prefix, cache, **options):
    out, lse = flash_attn_with_shared_prefix(
        q, *prefix, cache.k, cache.v, **cache.indices, return_softmax_lse=True, **options
    )
    rows = [cache.rows(b) for b in range(len(cache.seqlens))]
    whole = [tuple(torch.cat(parts) for parts in zip(prefix, own, strict=True)) for own in rows]
    assert_close_to_reference(q, whole, out, lse, **options)
    return out, lse


@DTYPES
@pytest.mark.parametrize("page_size", [None, 16])
@pytest.mark.parametrize("seqlen_q", [1, 3])
def test_one_prefix_for_all(dtype, page_size, seqlen_q):
    cache = Cache.of([40, 3, 17], page_size, dtype=dtype)
    q = randn(3, seqlen_q, 8, 64, dtype=dtype)
    check(q, prefix_of(300, dtype=dtype), cache, causal=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"softcap": 5.0}, {"softmax_scale": 0.3}, {"num_splits": 3}, {"sinks": torch.ones(8)}],
    ids=str,
)
def test_options_reach_both(options):
    check(randn(2, 2, 8, 64), prefix_of(70), Cache.dense([40, 9]), **options)


@DTYPES
@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}, {"softmax_scale": 0.3}], ids=str)
def test_so_many_queries_that_the_forward_takes_the_prefix(dtype, options):
    cache = Cache.dense([40, 3, 17, 5], dtype=dtype)
    check(randn(4, 3, 6, 64, dtype=dtype), prefix_of(300, dtype=dtype), cache, causal=True, **options)


def test_sequences_without_keys_of_their_own():
    q = randn(2, 1, 8, 64)
    out, lse = check(q, prefix_of(70), Cache.dense([0, 9]))
    k, v = (x[None] for x in prefix_of(70))
    want, want_lse = flash_attn_with_kvcache(q.transpose(0, 1), k, v, return_softmax_lse=True)
    assert out[0, 0].equal(want[0, 0])
    assert lse[0, :, 0].equal(want_lse[0, :, 0])


def test_prefix_in_pages_of_the_same_cache():
    """As a server has it: one pool, one table whose first columns are the same in all rows."""
    cache = Cache.paged([100, 100], 16)
    shared = cache.block_table[0, :4]
    own_table = cache.block_table[:, 4:]
    q = randn(2, 1, 8, 64)
    out = flash_attn_with_shared_prefix(
        q,
        cache.k,
        cache.v,
        cache.k,
        cache.v,
        cache_seqlens=36,
        block_table=own_table,
        prefix_block_table=shared,
        causal=True,
    )
    together = torch.cat([shared.expand(2, 4), own_table], 1)
    want = flash_attn_with_kvcache(q, cache.k, cache.v, cache_seqlens=100, block_table=together, causal=True)
    torch.testing.assert_close(out, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("one_scale", [False, True])
def test_caches_of_bytes(one_scale):
    pages = Cache.paged([100, 100], 16)
    dtype = torch.float8_e4m3fn
    caches = [x.nan_to_num().to(dtype) for x in (pages.k, pages.v)]
    size = () if one_scale else caches[0].shape[:3]
    scales = {"k_scale": torch.full(size, 0.5), "v_scale": torch.full(size, 2.0)}
    shared, own = pages.block_table[0, :4], pages.block_table[:, 4:]
    q = randn(2, 1, 8, 64)
    options = {"cache_seqlens": 36, "block_table": own, "causal": True, **scales}
    out = flash_attn_with_shared_prefix(q, *caches, *caches, prefix_block_table=shared, **options)
    whole = torch.cat([shared.expand(2, 4), own], 1)
    want = flash_attn_with_kvcache(q, *caches, **(options | {"cache_seqlens": 100, "block_table": whole}))
    torch.testing.assert_close(out, want, rtol=2e-3, atol=4e-3)
    dense = [torch.full((50, 2, 64), 0.25).to(dtype) for _ in range(2)]
    if one_scale:
        assert flash_attn_with_shared_prefix(q, *dense, *caches, **options).isfinite().all()
    else:
        with pytest.raises(ValueError, match="k_scale must have the shape of the cache"):
            flash_attn_with_shared_prefix(q, *dense, *caches, **options)


def test_new_keys_are_appended():
    cache = Cache.dense([9, 4])
    k, v = (randn(2, 2, 2, 64, seed=seed) for seed in (8, 9))
    q = randn(2, 2, 8, 64)
    out, lse = flash_attn_with_shared_prefix(
        q, *prefix_of(50), cache.k, cache.v, k, v, **cache.indices, causal=True, return_softmax_lse=True
    )
    cache.seqlens = [n + 2 for n in cache.seqlens]
    assert cache.rows(0)[0][-2:].equal(k[0])
    again, again_lse = check(q, prefix_of(50), cache, causal=True)
    assert out.equal(again)
    assert lse.equal(again_lse)


def test_refused():
    cache = Cache.dense([9, 1])
    with pytest.raises(ValueError, match="2 queries' own keys in k_cache: one has 1 there and 0 new ones"):
        check(randn(2, 2, 8, 64), prefix_of(50), cache, causal=True)
    with pytest.raises(ValueError, match=r"k_prefix must have 3 dimensions; its shape is \(1, 50, 2, 64\)"):
        check(randn(2, 1, 8, 64), [x[None] for x in prefix_of(50)], cache)
    pages = {"prefix_block_table": torch.zeros(1, dtype=torch.int32)}
    with pytest.raises(ValueError, match="v_prefix must have 4 dimensions"):
        check(randn(2, 1, 8, 64), (randn(4, 16, 2, 64), randn(16, 2, 64)), cache, **pages)


def test_a_prefix_that_is_refused_leaves_the_cache_as_it_was():
    cache = Cache.dense([20])
    before = cache.k.view(torch.int16).clone()  # NaN where nothing is
    new = randn(1, 1, 2, 64, seed=30)
    lengths = {"cache_seqlens": torch.tensor([4], dtype=torch.int32)}
    k_prefix, v_prefix = prefix_of(70, head_dim=80)
    with pytest.raises(ValueError, match="same head_dim"):
        flash_attn_with_shared_prefix(
            randn(1, 1, 8, 64), k_prefix, v_prefix, cache.k, cache.v, new, new, **lengths
        )
    assert cache.k.view(torch.int16).equal(before)


def test_compiled():
    torch._dynamo.reset()
    cache, prefix = Cache.dense([9, 4]), prefix_of(50)
    arguments = (randn(2, 1, 8, 64), *prefix, cache.k.nan_to_num(), cache.v.nan_to_num())

    def attend(q, k_prefix, v_prefix, k_cache, v_cache, lengths):
        return flash_attn_with_shared_prefix(
            q, k_prefix, v_prefix, k_cache, v_cache, cache_seqlens=lengths, causal=True
        )

    lengths = cache.indices["cache_seqlens"]
    got = torch.compile(attend, fullgraph=True, backend="aot_eager")(*arguments, lengths)
    assert got.equal(attend(*arguments, lengths))
    assert not math.isnan(got.sum())
