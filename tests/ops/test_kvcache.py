"""flash_attn_with_kvcache against float64: what a cache can hold, and what may change scores."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_with_kvcache, simulated_instructions
from tests.kit.kvcache import Cache, assert_decodes, randn

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])


@DTYPES
@pytest.mark.parametrize("ratio", [1, 3, 4, 6, 8, 16, 17])
@pytest.mark.parametrize("seqlen_q", [1, 5])
def test_query_heads_of_a_key_head(dtype, ratio, seqlen_q):
    cache = Cache.dense([200, 1], heads_kv=2, head_dim=128, dtype=dtype)
    assert_decodes(randn(2, seqlen_q, 2 * ratio, 128, dtype=dtype), cache, causal=True)


@DTYPES
@pytest.mark.parametrize("head_dim", [16, 32, 40, 64, 72, 80, 96, 128, 160, 192, 256, 512, 59, 100, 250, 300])
def test_head_dims(dtype, head_dim):
    cache = Cache.dense([150], head_dim=head_dim, dtype=dtype)
    assert_decodes(randn(1, 2, 4, head_dim, dtype=dtype), cache, causal=True)


@DTYPES
def test_values_have_their_own_head_dim(dtype):
    cache = Cache.dense([70], head_dim=128, head_dim_v=64, dtype=dtype)
    assert_decodes(randn(1, 1, 4, 128, dtype=dtype), cache)


@DTYPES
@pytest.mark.parametrize("seqlens", [[0], [1, 15, 16, 17], [63, 64, 65], [0, 300, 7]], ids=str)
@pytest.mark.parametrize("page_size", [None, 16, 48, 256])
def test_lengths(dtype, seqlens, page_size):
    cache = Cache.of(seqlens, page_size, dtype=dtype)
    assert_decodes(randn(len(seqlens), 1, 8, 64, dtype=dtype), cache)


@DTYPES
@pytest.mark.parametrize("num_splits", [0, 1, 2, 3, 8, 32, 128])
@pytest.mark.parametrize("page_size", [None, 32])
def test_splits(dtype, num_splits, page_size):
    cache = Cache.of([500, 3, 130], page_size, dtype=dtype)
    assert_decodes(randn(3, 2, 4, 64, dtype=dtype), cache, causal=True, num_splits=num_splits)


@DTYPES
@pytest.mark.parametrize(
    "options",
    [
        {"window_size": (20, 0)},
        {"window_size": (0, 0), "causal": True},
        {"window_size": (-1, 3)},
        {"window_size": (5, 60)},
        {"softcap": 5.0, "causal": True},
        {"softmax_scale": -0.5},
        {"softmax_scale": 0.0},
        {"alibi": "heads", "causal": True},
        {"alibi": "batch"},
        {"alibi": "batch", "softcap": 8.0, "window_size": (40, 10)},
        {"sinks": True, "causal": True},
        {"sinks": True, "num_splits": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("page_size", [None, 16])
def test_what_may_change_scores(dtype, options, page_size):
    cache = Cache.of([120, 2], page_size, dtype=dtype)
    options = dict(options)
    slopes = options.pop("alibi", None)
    if slopes:
        options["alibi_slopes"] = torch.rand((4,) if slopes == "heads" else (2, 4)) + 0.1
    if options.pop("sinks", False):
        options["sinks"] = torch.tensor([0.5, -1.0, 3.0, 0.0])
    assert_decodes(randn(2, 3, 4, 64, dtype=dtype), cache, **options)


@DTYPES
def test_more_queries_than_keys(dtype):
    cache = Cache.dense([3, 0], dtype=dtype)
    out, lse = assert_decodes(randn(2, 7, 4, 64, dtype=dtype), cache, causal=True)
    assert (out[0, :4] == 0).all()
    assert (lse[0, :, :4] == -math.inf).all()


@DTYPES
def test_many_queries_need_many_tiles(dtype):
    cache = Cache.dense([100, 70], dtype=dtype)
    assert_decodes(randn(2, 50, 6, 64, dtype=dtype), cache, causal=True)


@DTYPES
def test_left_padding(dtype):
    cache = Cache.dense([100, 40, 5], leftpad=[7, 0, 5], dtype=dtype)
    assert_decodes(randn(3, 2, 4, 64, dtype=dtype), cache, window_size=(30, 0))


@DTYPES
def test_batch_indices(dtype):
    cache = Cache.dense([50, 60, 20], items=5, batch_idx=[3, 0, 4], leftpad=[0, 3, 0], dtype=dtype)
    assert_decodes(randn(3, 1, 4, 64, dtype=dtype), cache)


@DTYPES
@pytest.mark.parametrize("page_size", [None, 16])
def test_large_logits(dtype, page_size):
    cache = Cache.of([200], page_size, head_dim=128, dtype=dtype)
    assert_decodes(randn(1, 1, 8, 128, dtype=dtype) * 60, cache, causal=True)


def test_pages_may_be_shared():
    cache = Cache.paged([64, 64], page_size=16)
    cache.block_table[1, :3] = cache.block_table[0, :3]
    assert_decodes(randn(2, 1, 4, 64), cache)


def test_unused_entries_of_the_table_are_not_read():
    cache = Cache.paged([40, 5], page_size=16, spare_columns=3)
    cache.block_table[0, 3:] = torch.tensor([-1, 2**30, -7])[: cache.block_table.shape[1] - 3]
    cache.block_table[1, 1:] = 2**31 - 1
    assert_decodes(randn(2, 1, 4, 64), cache)


@DTYPES
def test_cache_with_any_strides(dtype):
    cache = Cache.dense([50, 30], dtype=dtype)
    both = torch.stack([cache.k, cache.v], 2)  # keys and values side by side
    cache.k, cache.v = both[:, :, 0], both[:, :, 1]
    assert_decodes(randn(2, 1, 4, 64, dtype=dtype).transpose(1, 2).contiguous().transpose(1, 2), cache)
    cache.k, cache.v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (cache.k, cache.v))
    assert_decodes(randn(2, 1, 4, 64, dtype=dtype), cache)


@DTYPES
def test_rows_at_odd_addresses(dtype):
    cache = Cache.dense([50, 30], dtype=dtype)
    for name in ("k", "v"):
        x = getattr(cache, name)
        wide = torch.full((*x.shape[:3], x.shape[3] + 3), math.nan, dtype=dtype)
        wide[..., 1:-2] = x
        setattr(cache, name, wide[..., 1:-2])
    assert_decodes(randn(2, 1, 4, 64, dtype=dtype), cache)


def test_runs_are_bitwise_equal():
    cache = Cache.paged([300, 77], page_size=16)
    q = randn(2, 1, 8, 64)
    first, second = (flash_attn_with_kvcache(q, cache.k, cache.v, **cache.indices) for _ in range(2))
    assert first.equal(second)


def test_no_queries_and_no_batch():
    cache = Cache.dense([10])
    assert flash_attn_with_kvcache(randn(1, 0, 4, 64), cache.k, cache.v, **cache.indices).shape == (
        1,
        0,
        4,
        64,
    )
    none = cache.k[:0]
    out, lse = flash_attn_with_kvcache(randn(0, 1, 4, 64), none, none, return_softmax_lse=True)
    assert out.shape == (0, 1, 4, 64)
    assert lse.shape == (0, 4, 1)


@DTYPES
def test_many_queries_run_on_the_forward(dtype):
    cache = Cache.dense([300, 256, 260, 290], heads_kv=4, dtype=dtype)
    before = simulated_instructions()
    assert_decodes(randn(4, 256, 8, 64, dtype=dtype), cache, causal=True, window_size=(100, 0))
    by_forward = simulated_instructions() - before
    assert_decodes(randn(4, 256, 8, 64, dtype=dtype), cache, causal=True, window_size=(100, 0), num_splits=2)
    assert simulated_instructions() - before > 2.2 * by_forward


@pytest.mark.parametrize("scale", [3e38, -3e38])
def test_a_huge_scale_is_finite(scale):
    q, k, v = (randn(1, n, 1, 64, seed=n) for n in (1, 50, 51))
    k, v = k[:, :50], v[:, :50]
    out = flash_attn_with_kvcache(torch.zeros_like(q), k, v, softmax_scale=scale)
    assert (out.double() - v.double().mean(1, keepdim=True)).abs().max() < 1e-3
