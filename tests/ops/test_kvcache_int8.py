"""Caches of int8 with a scale for each token and head: read exactly, and written with a known error."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_with_kvcache
from tests.kit.attention import attention
from tests.kit.kvcache import Cache, randn


def quantised(x):
    """The rows of x as integers and scales, rounded as an append does."""
    scale = x.float().abs().amax(-1) / 127
    return (x.float() / scale.clamp(min=1e-30)[..., None]).round().to(torch.int8), scale


def int8_call(cache):
    """A call on the cache, quantised; rows that hold no key get integers that would show."""
    call = dict(cache.indices)
    for name, x in (("k", cache.k), ("v", cache.v)):
        numbers, scale = quantised(x.nan_to_num(0.0))
        unused = x.isnan().any(-1)
        numbers[unused], scale[unused] = 77, math.nan
        call |= {f"{name}_cache": numbers, f"{name}_scale": scale}
    return call


def rows_of(call, cache):
    """What each sequence holds, as float64."""
    exact = Cache(
        call["k_cache"].double() * call["k_scale"].double()[..., None],
        call["v_cache"].double() * call["v_scale"].double()[..., None],
        cache.seqlens,
        cache.leftpad,
        cache.batch_idx,
        cache.block_table,
    )
    return [exact.rows(b) for b in range(len(cache.seqlens))]


def check(q, cache, **options):
    call = int8_call(cache)
    out, lse = flash_attn_with_kvcache(q, **call, return_softmax_lse=True, **options)
    options.pop("num_splits", None)
    for b, (k, v) in enumerate(rows_of(call, cache)):
        want = attention(q[b : b + 1], k[None], v[None], **options)
        scale = 4.0 if v.numel() == 0 else float(v.abs().max())
        assert (out[b : b + 1].double() - want.out).abs().max() <= 2e-3 * scale
        assert lse[b : b + 1].isinf().equal(want.lse.isinf())
        assert (lse[b : b + 1].double() - want.lse)[want.lse.isfinite()].abs().lt(2e-3).all()


@pytest.mark.parametrize("head_dim", [32, 64, 72, 128])
@pytest.mark.parametrize("ratio", [1, 4, 6, 8, 16])
def test_integers_times_scales(head_dim, ratio):
    cache = Cache.dense([200, 1, 0, 77], head_dim=head_dim)
    check(randn(4, 1, 2 * ratio, head_dim), cache)


@pytest.mark.parametrize("page_size", [16, 48])
@pytest.mark.parametrize("num_splits", [0, 3])
def test_pages(page_size, num_splits):
    check(randn(2, 3, 8, 64), Cache.paged([300, 17], page_size), causal=True, num_splits=num_splits)


def test_scales_of_any_size():
    cache = Cache.dense([150], head_dim=64)
    cache.k *= torch.logspace(-3, 1, 155)[None, :, None, None].half()
    cache.v *= torch.logspace(-4, 3, 155)[None, :, None, None].half()
    check(randn(1, 1, 8, 64), cache)


@pytest.mark.parametrize("page_size", [None, 16])
@pytest.mark.parametrize("rotary", [False, True])
def test_append_rounds_to_the_nearest_of_255_steps(page_size, rotary):
    spare = {"spare_columns": 2} if page_size else {"spare": 9}
    cache = Cache.of([33, 20], page_size, **spare)
    call = int8_call(cache)
    for name in ("k_scale", "v_scale"):
        call[name] = call[name].nan_to_num(0.0)
    before = {name: call[name].clone() for name in ("k_cache", "v_cache", "k_scale", "v_scale")}
    k, v = (randn(2, 3, 2, 64, seed=s) for s in (8, 9))
    k[0, 0, 0] = 0  # a row without a largest number
    angles = torch.zeros(128, 16).half()
    turn = {"rotary_cos": angles + 1, "rotary_sin": angles} if rotary else {}  # by 0 degrees
    out = flash_attn_with_kvcache(randn(2, 3, 8, 64), k=k, v=v, causal=True, **call, **turn)
    cache.seqlens = [n + 3 for n in cache.seqlens]
    for b, (keys, values) in enumerate(rows_of(call, cache)):
        for got, want in ((keys[-3:], k[b]), (values[-3:], v[b])):
            step = want.double().abs().amax(-1, keepdim=True) / 127
            assert ((got - want.double()).abs() <= 0.501 * step).all()
    for name, old in before.items():
        changed = (call[name] != old).reshape(*old.shape[:3], -1).any(-1).sum()
        assert changed <= 2 * 3 * 2, f"{name}: {changed} rows were written"
    assert out.isfinite().all()


def test_error_of_the_format():
    """Against the numbers before rounding: the error that int8 costs, on normal numbers."""
    cache = Cache.dense([1000], head_dim=128)
    q = randn(1, 1, 8, 128)
    out = flash_attn_with_kvcache(q, **int8_call(cache))
    k, v = cache.rows(0)
    want = attention(q, k[None], v[None]).out
    assert (out.double() - want).abs().max() < 0.02 * want.abs().max() + 2e-3


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"k_scale": None}, ValueError, "k_scale must be given with an int8 cache"),
        ({"v_scale": torch.ones(1, 25)}, ValueError, "v_scale must have the shape of the cache"),
        ({"k_scale": torch.ones(1, 25, 2).half()}, TypeError, "k_scale must have dtype torch.float32"),
        ({"q": randn(1, 1, 4, 64).bfloat16()}, TypeError, "int8 cache is served for torch.float16"),
        ({"v_cache": randn(1, 25, 2, 64)}, TypeError, "k_cache and v_cache must have the same dtype"),
    ],
)
def test_refused(change, error, text):
    call = {"q": randn(1, 1, 4, 64), **int8_call(Cache.dense([20]))} | change
    with pytest.raises(error, match=text):
        flash_attn_with_kvcache(**call)


def test_scales_are_for_int8_alone():
    cache = Cache.dense([20])
    with pytest.raises(ValueError, match="k_scale is for an int8 cache alone"):
        flash_attn_with_kvcache(randn(1, 1, 4, 64), cache.k, cache.v, k_scale=torch.ones(1, 25, 2))


@pytest.mark.parametrize("largest", [1e-3, 1e-5, 3e-7])
def test_small_values_keep_their_digits(largest):
    q, k, v = (randn(1, 1, 2, 64, seed=seed) for seed in range(3))
    v = (v / v.abs().max() * largest).half()
    caches = [torch.zeros(1, 64, 2, 64, dtype=torch.int8) for _ in range(2)]
    scales = [torch.zeros(1, 64, 2) for _ in range(2)]
    out = flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=0, k_scale=scales[0], v_scale=scales[1])
    # Of one key the output is its value: half a step of the format, and fp16's own roundings below 6e-5.
    allowed = v.abs().max().item() / 254 * 1.01 + 2 * 2**-25
    assert (out.double() - v.double()).abs().max() <= allowed


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_not_finite_stays_so(bad):
    q, k, v = (randn(1, 1, 1, 64, seed=seed) for seed in range(3))
    v[0, 0, 0, 7] = bad
    caches = [torch.zeros(1, 64, 1, 64, dtype=torch.int8) for _ in range(2)]
    scales = [torch.zeros(1, 64, 1) for _ in range(2)]
    out = flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=0, k_scale=scales[0], v_scale=scales[1])
    assert out.isnan().all()


def bytes_of(head_dim, device="cpu"):
    """Arguments of a call that appends to an int8 cache."""
    caches = {f"{name}_cache": torch.zeros(1, 25, 2, head_dim, dtype=torch.int8) for name in "kv"}
    scales = {f"{name}_scale": torch.zeros(1, 25, 2) for name in "kv"}
    new = {name: randn(1, 1, heads, head_dim) for name, heads in (("q", 4), ("k", 2), ("v", 2))}
    call = {**new, **caches, **scales, "cache_seqlens": torch.zeros(1, dtype=torch.int32)}
    return {name: x.to(device) for name, x in call.items()}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_head_dim_without_a_kernel_is_refused_before_the_append(device):
    call = bytes_of(192, device)
    with pytest.raises(ValueError, match=r"int8 cache .* at most 128; k_cache has shape \[1, 25, 2, 192\]"):
        flash_attn_with_kvcache(**call)
    if device == "cpu":
        assert not call["k_cache"].any()
        assert not call["k_scale"].any()


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("change", ["strides", "offset"])
def test_rows_at_odd_bytes_are_refused(device, change):
    call = bytes_of(64, device)
    size = {"strides": (1, 25, 2, 66), "offset": (1, 25, 2, 128)}[change]
    rows = torch.zeros(size, dtype=torch.int8, device=device)
    call["v_cache"] = rows[..., 1:65] if change == "offset" else rows[..., :64]
    with pytest.raises(ValueError, match=r"multiples of 4 bytes.* v_cache has strides"):
        flash_attn_with_kvcache(**call)
