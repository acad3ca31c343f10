"""Batches of unequal lengths, balanced on the card: the right numbers, the same bits, and even work."""

import pytest
import torch

import flashattn_rocm._C as _C
from flashattn_rocm import flash_attn_varlen_func, flash_attn_with_kvcache
from flashattn_rocm.profiling.profile import timed_launches
from tests.kit.kvcache import Cache, assert_close_to_reference, assert_decodes, randn

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
RAGGED = [1500, 0, 3, 700, 16]


def is_balanced(cache, q, *, window=None):
    """Whether a call is one that these tests are about: shapes decide, lengths do not."""
    keys = cache.k.shape[1] if cache.block_table is None else cache.block_table.shape[1] * cache.k.shape[1]
    keys = keys if window is None else min(keys, window + q.shape[1])
    heads_kv = cache.k.shape[2]
    rows = q.shape[1] * q.shape[2] // heads_kv
    found = _C.plan_decode(len(cache.seqlens), heads_kv, rows, keys, cache.k.shape[3], own_lengths=True)
    return found["at_once"] > 0


@DTYPES
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("page_size", [None, 16])
@pytest.mark.parametrize("seqlen_q", [1, 5])
def test_unequal_lengths(dtype, head_dim, page_size, seqlen_q):
    cache = Cache.of(RAGGED, page_size, head_dim=head_dim, dtype=dtype)
    q = randn(5, seqlen_q, 8, head_dim, dtype=dtype)
    assert is_balanced(cache, q)
    assert_decodes(q, cache, causal=True)


@pytest.mark.parametrize(
    "options",
    [
        {"sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
        {"softcap": 5.0, "causal": True},
        {"alibi_slopes": torch.tensor([0.1, 0.5, 0.2, 0.9])},
        {"window_size": (600, 0)},
        {"window_size": (600, 3), "sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
    ],
    ids=str,
)
def test_what_may_change_scores(options):
    cache = Cache.paged(RAGGED)
    q = randn(5, 2, 4, 64)
    assert is_balanced(cache, q, window=sum(options["window_size"]) if "window_size" in options else None)
    assert_decodes(q, cache, **options)


def test_left_padding_and_indices():
    cache = Cache.dense(
        [1500, 40, 5, 900], items=6, batch_idx=[3, 0, 4, 1], leftpad=[3, 0, 5, 880], dtype=torch.float16
    )
    q = randn(4, 2, 4, 64)
    assert is_balanced(cache, q)
    assert_decodes(q, cache, causal=True)


@pytest.mark.parametrize("batch", [64, 65, 130])
def test_batches_of_more_sequences_than_lanes(batch):
    """Each lane counts for every 64th sequence."""
    lengths = [(37 * b) % 90 for b in range(batch)]
    lengths[1], lengths[batch - 1] = 900, 1300
    cache = Cache.paged(lengths, heads_kv=1, spare_columns=450)
    q = randn(batch, 1, 2, 64)
    assert is_balanced(cache, q)
    assert_decodes(q, cache)


def test_a_long_sequence_alone_has_work_for_the_card():
    """Without a split of its own: eight sequences of eight heads leave nothing to split in an even batch."""
    cache = Cache.paged([4096] + [20] * 7, heads_kv=8, head_dim=128, spare_columns=256)
    q = randn(8, 1, 8, 128)
    found = _C.plan_decode(8, 8, 1, cache.block_table.shape[1] * 16, 128, own_lengths=True)
    assert (found["splits"], found["at_once"] > 1) == (1, True)
    assert_decodes(q, cache)


@pytest.mark.parametrize(
    "lengths_q",
    [[3, 0, 1, 2], [40, 1, 1, 1]],  # a prompt among tokens is not balanced
    ids=str,
)
def test_packed_queries(lengths_q):
    lengths_k = [1400, 5, 0, 600]
    cache = Cache.paged(lengths_k)
    q = randn(sum(lengths_q), 4, 64)
    cu_q, cu_k = (torch.tensor([0, *lengths]).cumsum(0).int() for lengths in (lengths_q, lengths_k))
    assert _C.plan_decode(4, 2, 6, cache.block_table.shape[1] * 16, 64, own_lengths=True)["at_once"] > 0
    out, lse, _ = flash_attn_varlen_func(
        q,
        cache.k,
        cache.v,
        cu_q,
        cu_k,
        max(lengths_q),
        1400,
        block_table=cache.block_table,
        return_attn_probs=True,
    )
    for b, n in enumerate(lengths_q):
        rows = slice(int(cu_q[b]), int(cu_q[b]) + n)
        assert_close_to_reference(q[None, rows], [cache.rows(b)], out[None, rows], lse[None, :, rows])


def test_rows_past_the_last_sequence():
    cache = Cache.paged([1400, 40])
    q = randn(9, 4, 64)
    packed = {"cu_seqlens_q": torch.tensor([0, 2, 5]).int(), "max_seqlen_q": 3}
    junk = [torch.full((12, 4, 9, 64), torch.nan) for _ in range(4)]  # for the allocator to give again
    del junk
    out, lse = torch.ops.flashattn_rocm.decode(q, cache.k, cache.v, **cache.indices, **packed)
    assert (out[:5] != 0).any()
    assert (out[5:] == 0).all()
    assert lse[:, :5].isfinite().all()
    assert (lse[:, 5:] == -torch.inf).all()


def test_lengths_may_change_between_launches_of_the_same_arguments():
    """As in the replay of a graph: what is to be done follows from the lengths alone, on the card."""
    cache = Cache.paged([1500, 1500, 1500])
    q, lengths = randn(3, 1, 4, 64), torch.zeros(3, dtype=torch.int32)
    for seqlens in ([1500, 0, 20], [7, 1300, 1500], [0, 0, 0], [500, 500, 500]):
        cache.seqlens = seqlens
        lengths.copy_(torch.tensor(seqlens))
        call = {**cache.indices, "cache_seqlens": lengths}
        out, lse = flash_attn_with_kvcache(q, cache.k, cache.v, **call, return_softmax_lse=True)
        assert_close_to_reference(q, [cache.rows(b) for b in range(3)], out, lse)


def test_bits_do_not_depend_on_the_order_of_waves(monkeypatch):
    cache = Cache.paged(RAGGED, head_dim=128)
    q = randn(5, 1, 8, 128)
    found = []
    for seed in range(4):
        monkeypatch.setenv("FLASHATTN_SIM_SEED", str(seed))
        found.append(flash_attn_with_kvcache(q, cache.k, cache.v, **cache.indices, return_softmax_lse=True))
    assert all(out.equal(found[0][0]) and lse.equal(found[0][1]) for out, lse in found)


def test_equal_sequences_are_cut_as_by_the_plan():
    """So a full cache is read as if its length were known."""
    cache = Cache.paged([1504] * 3, spare_columns=0)
    q = randn(3, 1, 4, 64)
    splits = _C.plan_decode(3, 2, 2, 1504, 64, own_lengths=True)["splits"]
    assert splits > 1
    own, given = (
        flash_attn_with_kvcache(q, cache.k, cache.v, **cache.indices, num_splits=n) for n in (0, splits)
    )
    assert own.equal(given)


@pytest.mark.parametrize(
    ("heads_kv", "lengths", "most"),
    [
        (1, [16384, *[256] * 7], 1.25),
        (1, [8192, 4096, 2048, 1024, 512, 256, 128, 0], 1.1),
        (8, [8192, *[128] * 7], 1.5),  # not split at all if lengths were equal
    ],
)
def test_a_long_sequence_is_spread_over_the_card(heads_kv, lengths, most):
    """Simulated clocks, beside those of the same bytes in equal sequences of the same cache."""

    q = randn(8, 1, 4 * heads_kv, 128)
    pages, columns = sum(lengths) // 16, max(lengths) // 16
    k, v = (torch.zeros(pages, 16, heads_kv, 128).half() for _ in range(2))

    def clocks(lengths):
        table, first = torch.zeros(8, columns, dtype=torch.int32), 0
        for b, n in enumerate(lengths):
            table[b, : n // 16] = torch.arange(first, first + n // 16)
            first += n // 16
        seqlens = torch.tensor(lengths, dtype=torch.int32)
        with timed_launches() as launches:
            flash_attn_with_kvcache(q, k, v, cache_seqlens=seqlens, block_table=table)
        return sum(launch.clocks for launch in launches)

    assert clocks(lengths) <= most * clocks([pages // 8 * 16] * 8)
