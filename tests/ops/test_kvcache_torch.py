"""The cache ops under torch: opcheck, fake tensors, torch.compile, versions of what is written in place."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.library import opcheck

from flashattn_rocm import flash_attn_with_kvcache
from tests.kit.kvcache import Cache, randn


def ops():
    return torch.ops.flashattn_rocm


@pytest.mark.parametrize("page_size", [None, 16])
def test_opcheck_of_decode(page_size):
    cache = Cache.of([20, 9], page_size)
    for x in (cache.k, cache.v):  # opcheck compares tensors; NaN is not equal to itself
        x.nan_to_num_()
    opcheck(
        ops().decode, (randn(2, 3, 4, 64), cache.k, cache.v, 0.3, True), {**cache.indices, "window_left": 12}
    )


@pytest.mark.parametrize("page_size", [None, 16])
def test_opcheck_of_append(page_size):
    cache = Cache.of([20, 9], page_size)
    for x in (cache.k, cache.v):
        x.nan_to_num_()
    indices = cache.indices
    new, cos = randn(2, 2, 2, 64), torch.ones(64, 8).half()
    options = {"q": randn(2, 2, 4, 64), "rotary_cos": cos, "rotary_sin": cos}
    if page_size:
        options["block_table"] = indices["block_table"]
    opcheck(ops().append_kv_, (cache.k, cache.v, new, new, indices["cache_seqlens"]), options)


def test_compiled_step_is_the_eager_one():
    def step(q, k_cache, v_cache, k, v, lengths):
        return flash_attn_with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens=lengths, causal=True) * 2

    torch._dynamo.reset()
    cache = Cache.dense([20, 9])
    q, k, v = (randn(2, 1, heads, 64, seed=heads) for heads in (4, 2, 2))
    own, theirs = ((cache.k.clone(), cache.v.clone()) for _ in range(2))
    lengths = cache.indices["cache_seqlens"]
    want = step(q, *own, k, v, lengths)
    got = torch.compile(step, fullgraph=True, backend="aot_eager")(q, *theirs, k, v, lengths)
    assert got.equal(want)
    for a, b in zip(own, theirs, strict=True):
        assert a.view(torch.int16).equal(b.view(torch.int16))


def test_append_counts_as_a_change_in_place():
    cache = Cache.dense([5])
    new = randn(1, 1, 2, 64)
    before = cache.k._version, cache.v._version
    flash_attn_with_kvcache(randn(1, 1, 4, 64), cache.k, cache.v, new, new, **cache.indices)
    assert (cache.k._version, cache.v._version) == (before[0] + 1, before[1] + 1)
    with torch.inference_mode():
        k, v = cache.k.clone(), cache.v.clone()
        flash_attn_with_kvcache(randn(1, 1, 4, 64), k, v, new, new, **cache.indices)


def test_paged_varlen_is_each_sequence_by_itself():
    from flashattn_rocm import flash_attn_varlen_func

    lengths_q, lengths_k = [3, 0, 7], [40, 5, 7]
    cache = Cache.paged(lengths_k, 16)
    q = randn(10, 4, 64)
    cu_q, cu_k = (torch.tensor([0, *lengths]).cumsum(0).int() for lengths in (lengths_q, lengths_k))
    out, lse, _ = flash_attn_varlen_func(
        q,
        cache.k,
        cache.v,
        cu_q,
        cu_k,
        7,
        40,
        causal=True,
        block_table=cache.block_table,
        return_attn_probs=True,
    )
    assert lse.shape == (4, 10)
    first = 0
    for b, n in enumerate(lengths_q):
        alone = Cache(cache.k, cache.v, [lengths_k[b]], block_table=cache.block_table[b : b + 1])
        want, want_lse = flash_attn_with_kvcache(
            q[None, first : first + n],
            cache.k,
            cache.v,
            **alone.indices,
            causal=True,
            return_softmax_lse=True,
        )
        torch.testing.assert_close(out[first : first + n], want[0], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(lse[:, first : first + n], want_lse[0], rtol=1e-4, atol=1e-4)
        first += n


@pytest.mark.parametrize("num_splits", [1, 3])
def test_rows_past_the_last_sequence_are_zeros(num_splits):
    cache = Cache.paged([70, 40])
    q = randn(9, 4, 64)
    packed = {"cu_seqlens_q": torch.tensor([0, 2, 5]).int(), "max_seqlen_q": 3, "num_splits": num_splits}
    junk = [torch.full((3, 4, 9, 64), torch.nan) for _ in range(4)]  # for the allocator to give again
    del junk
    out, _ = ops().decode(q, cache.k, cache.v, **cache.indices, **packed)
    assert (out[:5] != 0).any()
    assert (out[5:] == 0).all()


@pytest.mark.parametrize("name", ["q", "k_cache", "v_cache", "k", "v", "sinks"])
def test_what_requires_grad_is_refused(name):
    cache = Cache.dense([20])
    call = {"q": randn(1, 1, 4, 64), "k_cache": cache.k, "v_cache": cache.v, **cache.indices}
    call |= {"k": randn(1, 1, 2, 64), "v": randn(1, 1, 2, 64), "sinks": torch.zeros(4)}
    call[name] = call[name].requires_grad_()
    with pytest.raises(
        NotImplementedError, match=rf"{name} requires grad, .* KV cache has no backward: .*no_grad"
    ):
        flash_attn_with_kvcache(**call)
    with torch.no_grad():
        assert not flash_attn_with_kvcache(**call).requires_grad


def test_fake_tensors_tell_their_devices():
    with FakeTensorMode():
        q, cache = (torch.empty(1, n, 4, 64, dtype=torch.float16) for n in (1, 20))
        with pytest.raises(ValueError, match="v_cache must be on the device of q, cpu; it is on cuda:0"):
            ops().decode(q, cache, torch.empty_like(cache, device="cuda:0"))
