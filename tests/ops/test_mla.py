"""Multi-head latent attention: decoding from a cache of latents, and prefill with narrower V than K."""

import pytest
import torch

from flashattn_rocm import flash_attn_func, flash_attn_with_kvcache, flash_mla_with_kvcache
from tests.kit.kvcache import Cache, assert_close_to_reference, assert_decodes, randn

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
SCALE = 192**-0.5


def latents(seqlens, page_size=None, **options):
    """A cache whose values are the first columns of its keys."""
    cache = Cache.of(seqlens, page_size, heads_kv=1, head_dim=576, **options)
    cache.v = cache.k[..., :512]
    return cache


def check(q, cache, **options):
    return assert_decodes(q, cache, softmax_scale=SCALE, **options)


@DTYPES
@pytest.mark.parametrize("heads", [1, 5, 16, 128])
@pytest.mark.parametrize("page_size", [None, 16, 64])
def test_heads_share_one_row_of_the_cache(dtype, heads, page_size):
    check(randn(3, 1, heads, 576, dtype=dtype), latents([200, 1, 33], page_size, dtype=dtype))


@DTYPES
@pytest.mark.parametrize("seqlen_q", [2, 5])
@pytest.mark.parametrize("num_splits", [1, 3])
def test_tokens_and_splits(dtype, seqlen_q, num_splits):
    cache = latents([150, 20, 0], 16, dtype=dtype)
    check(randn(3, seqlen_q, 12, 576, dtype=dtype), cache, causal=True, num_splits=num_splits)


@DTYPES
@pytest.mark.parametrize("heads", [4, 16])
def test_a_ragged_batch(dtype, heads):
    """Of a cache so long that the card balances it (tests/ops/test_ragged.py)."""
    check(randn(4, 1, heads, 576, dtype=dtype), latents([1300, 0, 600, 20], 16, dtype=dtype))


@pytest.mark.parametrize("part", [slice(0, 512), slice(512, 576)], ids=["latent", "rotary"])
def test_each_part_of_the_keys_counts(part):
    cache = latents([90])
    q = torch.zeros(1, 1, 16, 576, dtype=torch.float16)
    q[..., part] = randn(1, 1, 16, part.stop - part.start) * 2
    check(q, cache)


def test_options_of_the_scores():
    options = {
        "softcap": 5.0,
        "sinks": torch.ones(16),
        "alibi_slopes": torch.rand(16),
        "window_size": (40, 0),
    }
    cache = latents([90, 20])
    out = flash_attn_with_kvcache(randn(2, 1, 16, 576), cache.k, cache.v, **cache.indices, **options)
    assert out.isfinite().all()
    del options["sinks"]
    check(randn(2, 1, 16, 576), cache, **options)


@pytest.mark.parametrize("page_size", [None, 16])
def test_append(page_size):
    cache = latents([30, 9], page_size, **({"spare_columns": 2} if page_size else {}))
    if page_size:
        cache.block_table[cache.block_table == 2**30] = 0  # unused by these lengths
    q, k = randn(2, 2, 16, 576), randn(2, 2, 1, 576, seed=3)
    want = [torch.cat([cache.rows(b)[0], k[b]]) for b in range(2)]
    out, lse = flash_mla_with_kvcache(
        q, cache.k, cache.block_table, cache.indices["cache_seqlens"], k=k, softmax_scale=SCALE, causal=True
    )
    cache.seqlens = [n + 2 for n in cache.seqlens]
    for b, keys in enumerate(want):
        assert cache.rows(b)[0].equal(keys)
    rows = [(keys, keys[..., :512]) for keys in want]
    assert_close_to_reference(q, rows, out, lse, softmax_scale=SCALE, causal=True)


def test_values_must_lie_in_the_keys():
    cache = latents([30])
    q = randn(1, 1, 16, 576)
    with pytest.raises(
        ValueError, match=r"at most 512, and 576 where v_cache is k_cache\[\.\.\., :512\]; got 576"
    ):
        flash_attn_with_kvcache(q, cache.k, cache.v.clone(), **cache.indices)
    with pytest.raises(ValueError, match=r"576 columns, of which head_dim_v=512 .*head_dim_v=256"):
        flash_mla_with_kvcache(q, cache.k, head_dim_v=256)
    odd = torch.zeros(1, 35, 1, 577, dtype=torch.float16)[..., 1:]
    with pytest.raises(ValueError, match="multiples of 4 bytes"):
        flash_mla_with_kvcache(q, odd)


def test_compiled():
    torch._dynamo.reset()
    cache = latents([30, 9])
    q, k_cache, lengths = randn(2, 1, 16, 576), cache.k.nan_to_num(), cache.indices["cache_seqlens"]

    def attend(q, k_cache, lengths):
        return flash_mla_with_kvcache(q, k_cache, None, lengths)[0]

    got = torch.compile(attend, fullgraph=True, backend="aot_eager")(q, k_cache, lengths)
    assert got.equal(attend(q, k_cache, lengths))


@DTYPES
@pytest.mark.parametrize("seqlen_k", [70, 130])
def test_prefill_of_192_columns_with_values_of_128(dtype, seqlen_k):
    q, k = randn(1, 70, 4, 192, dtype=dtype), randn(1, seqlen_k, 4, 192, dtype=dtype, seed=1)
    v = randn(1, seqlen_k, 4, 128, dtype=dtype, seed=2)
    out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert out.shape == (1, 70, 4, 128)
    assert_close_to_reference(q, [(k[0], v[0])], out, lse, causal=True)
