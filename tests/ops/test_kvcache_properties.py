"""Random cache states against float64: empty, full, left-padded, shared pages, junk behind the lengths."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.kvcache import Cache, assert_decodes, randn

_DIMS = st.sampled_from([32, 64, 72, 128])


@st.composite
def calls(draw):
    """(q, cache, options) of a call whose answer is known."""
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16]))
    head_dim, heads_kv = draw(_DIMS), draw(st.integers(1, 2))
    seqlens = draw(st.lists(st.one_of(st.just(0), st.integers(0, 90)), min_size=1, max_size=3))
    page = draw(st.sampled_from([None, None, 16, 32, 48, 80]))
    common = {"heads_kv": heads_kv, "head_dim": head_dim, "dtype": dtype}
    if page:
        cache = Cache.paged(seqlens, page, **common, spare_columns=draw(st.integers(1, 3)))
        if len(seqlens) > 1 and draw(st.booleans()):  # a prefix of pages in common
            shared = min(seqlens[0], seqlens[1]) // page
            cache.block_table[1, :shared] = cache.block_table[0, :shared]
    else:
        leftpad = draw(st.one_of(st.none(), st.just([draw(st.integers(0, n)) for n in seqlens])))
        batch_idx = None
        if draw(st.booleans()):
            batch_idx = draw(st.permutations(range(len(seqlens) + 1)))[: len(seqlens)]
        spare = draw(st.integers(0, 20))
        if max(seqlens) + spare == 0:
            spare = 1
        cache = Cache.dense(
            seqlens, **common, leftpad=leftpad, batch_idx=batch_idx, items=len(seqlens) + 1, spare=spare
        )
        if batch_idx is None:
            cache.k, cache.v = cache.k[: len(seqlens)], cache.v[: len(seqlens)]
    ratio, seqlen_q = draw(st.sampled_from([1, 2, 3, 5, 8])), draw(st.integers(1, 6))
    sides = st.one_of(st.just(-1), st.integers(0, 50))
    options = {
        "causal": draw(st.booleans()),
        "window_size": (draw(sides), draw(sides)),
        "num_splits": draw(st.sampled_from([0, 0, 1, 2, 5])),
    }
    if draw(st.booleans()):
        options["sinks"] = randn(heads_kv * ratio, dtype=torch.float32, seed=7)
    if draw(st.booleans()):
        options["alibi_slopes"] = torch.rand(heads_kv * ratio, generator=torch.Generator().manual_seed(1))
    q = randn(len(seqlens), seqlen_q, heads_kv * ratio, head_dim, dtype=dtype, seed=draw(st.integers(0, 99)))
    return q, cache, options


def _check(call):
    q, cache, options = call
    assert_decodes(q, cache, **options)


_SETTINGS = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=60, **_SETTINGS)
@given(calls())
def test_random_states(call):
    _check(call)


@pytest.mark.long
@settings(max_examples=1000, **_SETTINGS)
@given(calls())
def test_a_thousand_random_states(call):
    _check(call)
