"""Caches of one byte a number, with scales: read exactly, and written with a known error."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashattn_rocm import flash_attn_with_kvcache
from tests.kit.attention import attention
from tests.kit.kvcache import Cache, randn


@dataclass(frozen=True)
class Format:
    """A format of the cache.

    Attributes:
        dtype: of k_cache and v_cache.
        largest: what a row's largest number becomes.
        relative: error of rounding, of a number.
        absolute: likewise, of a scale.
    """

    dtype: torch.dtype
    largest: float
    relative: float
    absolute: float

    def rounded(self, x):
        """float32 as bytes; what is too large becomes the largest."""
        if self.dtype == torch.int8:
            return x.round().to(torch.int8)
        most = torch.finfo(self.dtype).max
        return x.clamp(-most, most).to(self.dtype)

    def quantised(self, x):
        """The rows of x as numbers and scales, rounded as an append does."""
        scale = x.float().abs().amax(-1) / self.largest
        return self.rounded(x.float() / scale.clamp(min=1e-30)[..., None]), scale


INT8 = Format(torch.int8, 127.0, 0.0, 0.501)
E4M3 = Format(torch.float8_e4m3fn, 448.0, 2**-4, 2**-10)
E5M2 = Format(torch.float8_e5m2, 1.75, 2**-3, 2**-17)
FORMATS = pytest.mark.parametrize("form", [INT8, E4M3, E5M2], ids=["int8", "e4m3", "e5m2"])
FLOATS = pytest.mark.parametrize("form", [E4M3, E5M2], ids=["e4m3", "e5m2"])


def call_on(cache, form):
    """A call on the cache, quantised; rows that hold no key get numbers that would show."""
    call = dict(cache.indices)
    for name, x in (("k", cache.k), ("v", cache.v)):
        numbers, scale = form.quantised(x.nan_to_num(0.0))
        unused = x.isnan().any(-1)
        numbers.view(torch.uint8)[unused], scale[unused] = 77, math.nan
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


def check(q, cache, form, **options):
    call = call_on(cache, form)
    out, lse = flash_attn_with_kvcache(q, **call, return_softmax_lse=True, **options)
    options.pop("num_splits", None)
    for b, (k, v) in enumerate(rows_of(call, cache)):
        want = attention(q[b : b + 1], k[None], v[None], **options)
        scale = 4.0 if v.numel() == 0 else float(v.abs().max())
        assert (out[b : b + 1].double() - want.out).abs().max() <= 2e-3 * scale
        assert lse[b : b + 1].isinf().equal(want.lse.isinf())
        assert (lse[b : b + 1].double() - want.lse)[want.lse.isfinite()].abs().lt(2e-3).all()


@FORMATS
@pytest.mark.parametrize("head_dim", [32, 64, 72, 128, 256])
@pytest.mark.parametrize("ratio", [1, 4, 6, 8, 16])
def test_numbers_times_scales(form, head_dim, ratio):
    cache = Cache.dense([200, 1, 0, 77], head_dim=head_dim)
    check(randn(4, 1, 2 * ratio, head_dim), cache, form)


@FORMATS
@pytest.mark.parametrize("ratio", [4, 8])
def test_a_ragged_batch(form, ratio):
    """Of a cache so long that the card balances it (tests/ops/test_ragged.py)."""
    check(randn(4, 1, ratio, 128), Cache.paged([1300, 0, 600, 20], heads_kv=1, head_dim=128), form)


@FORMATS
@pytest.mark.parametrize("page_size", [16, 48])
@pytest.mark.parametrize("num_splits", [0, 3])
def test_pages(form, page_size, num_splits):
    check(randn(2, 3, 8, 64), Cache.paged([300, 17], page_size), form, causal=True, num_splits=num_splits)


@FORMATS
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_states(form, data):
    seqlens = data.draw(st.lists(st.integers(0, 90), min_size=1, max_size=3))
    head_dim, ratio = data.draw(st.sampled_from([32, 64, 72, 128])), data.draw(st.sampled_from([1, 3, 4, 8]))
    page = data.draw(st.sampled_from([None, 16, 48]))
    if page:
        cache = Cache.paged(seqlens, page, head_dim=head_dim)
    else:
        leftpad = data.draw(st.one_of(st.none(), st.just([data.draw(st.integers(0, n)) for n in seqlens])))
        cache = Cache.dense(seqlens, head_dim=head_dim, leftpad=leftpad)
    options = {"causal": data.draw(st.booleans()), "num_splits": data.draw(st.sampled_from([0, 1, 3]))}
    check(randn(len(seqlens), data.draw(st.integers(1, 5)), 2 * ratio, head_dim), cache, form, **options)


@FORMATS
def test_scales_of_any_size(form):
    cache = Cache.dense([150], head_dim=64)
    cache.k *= torch.logspace(-3, 1, 155)[None, :, None, None].half()
    cache.v *= torch.logspace(-4, 3, 155)[None, :, None, None].half()
    check(randn(1, 1, 8, 64), cache, form)


@FORMATS
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("ratio", [4, 8])
def test_scales_of_values_in_any_order(form, head_dim, ratio):
    """Zeros first, then rising by powers of two and falling again, of either sign."""
    cache = Cache.dense([400], heads_kv=1, head_dim=head_dim)
    call = call_on(cache, form)
    exponents = torch.cat([torch.linspace(-100, -6, 200), torch.linspace(-6, -100, 200)])
    scales = torch.exp2(exponents) * torch.where(torch.arange(400) % 3 == 0, -1.0, 1.0)
    scales[:70] = 0.0
    call["v_scale"][0, :400, 0] = scales
    q = randn(1, 1, ratio, head_dim)
    out, lse = flash_attn_with_kvcache(q, **call, return_softmax_lse=True)
    (k, v) = rows_of(call, cache)[0]
    want = attention(q, k[None], v[None])
    assert (out.double() - want.out).abs().max() <= 1e-3 * want.out.abs().max() + 2**-24
    assert (lse.double() - want.lse).abs().max() < 2e-3
    call["v_scale"].zero_()
    out, lse = flash_attn_with_kvcache(q, **call, return_softmax_lse=True)
    assert (out == 0).all()
    assert (lse.double() - want.lse).abs().max() < 2e-3


@FORMATS
def test_scales_of_values_beyond_halves(form):
    cache = Cache.dense([100], heads_kv=1, head_dim=128)
    call = call_on(cache, form)
    call["v_cache"] = (torch.arange(cache.v.numel()) % 2).view_as(cache.v).to(form.dtype)
    call["v_scale"].fill_(60000.0)
    q = randn(1, 1, 8, 128)
    (k, v) = rows_of(call, cache)[0]
    want = attention(q, k[None], v[None]).out
    assert (flash_attn_with_kvcache(q, **call).double() - want).abs().max() <= 2e-3 * 60000


@FLOATS
@pytest.mark.parametrize("head_dim", [8, 72, 120, 136, 248])
@pytest.mark.parametrize("ratio", [4, 8])
def test_nan_of_another_head_stays_there(form, head_dim, ratio):
    """A lane's chunk of 16 columns can end in the next head's."""
    cache = Cache.dense([50], heads_kv=2, head_dim=head_dim)
    call = call_on(cache, form)
    alone, _ = flash_attn_with_kvcache(q := randn(1, 1, 2 * ratio, head_dim), **call, return_softmax_lse=True)
    for name in ("k_cache", "v_cache"):
        call[name].view(torch.uint8)[:, :, 1] = 0x7F
    out = flash_attn_with_kvcache(q, **call)
    assert out[:, :, :ratio].equal(alone[:, :, :ratio])
    assert out[:, :, ratio:].isnan().all()


def test_large_queries_of_int8_keys():
    """Keys are multiplied with a bias, which the rows' sums take away again: 9 times the largest key."""
    cache = Cache.dense([300], heads_kv=1, head_dim=128)
    q = randn(1, 1, 8, 128) + torch.linspace(-300, 300, 8).half()[:, None]
    check(q, cache, INT8, softmax_scale=128**-0.5 / 100)


def every_byte(form):
    """Of 256 numbers: (1, 1 key, 2 heads, 128)."""
    return torch.arange(256, dtype=torch.uint8).view(form.dtype).view(1, 1, 2, 128)


@FLOATS
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_every_byte_is_its_number_as_a_value(form, scale):
    numbers = every_byte(form)
    scales = torch.full((), scale)
    q, k = torch.zeros(1, 1, 2, 128).half(), torch.zeros_like(numbers)
    out = flash_attn_with_kvcache(q, k, numbers, k_scale=scales, v_scale=scales)
    want = (numbers.float() * scale).half()
    assert out.isfinite().equal(want.isfinite())
    assert out[want.isfinite()].equal(want[want.isfinite()])


@FLOATS
def test_every_byte_is_its_number_as_a_key(form):
    """A query that is a column's unit vector has that column as its score; NaN reaches every score."""
    numbers = every_byte(form)
    numbers.view(torch.uint8)[~numbers.float().isfinite()] = 0
    q = torch.eye(128).half()[None, :, None].expand(1, 128, 2, 128).contiguous()
    call = {"k_cache": numbers, "v_cache": torch.zeros_like(numbers)}
    scales = {"k_scale": torch.ones(1), "v_scale": torch.ones(1)}
    _, lse = flash_attn_with_kvcache(q, **call, **scales, softmax_scale=1.0, return_softmax_lse=True)
    want = numbers.float()[0, 0]
    assert ((lse[0] - want).abs() <= 2**-22 * want.abs().clamp(min=1.0)).all()  # it is a logarithm near 1
    numbers.view(torch.uint8)[0, 0, 1, 5] = 0x7F
    out = flash_attn_with_kvcache(q, **call, **scales)
    assert out[:, :, 1].isnan().all()
    assert (out[:, :, 0] == 0).all()


@FLOATS
def test_every_half_is_rounded_as_torch_rounds_it(form):
    """With one scale for the whole cache, which is not written; what is too large becomes the largest."""
    halves = torch.arange(2**16).to(torch.int32).to(torch.int16).view(torch.float16).view(1, 512, 1, 128)
    caches = [torch.zeros(1, 512, 1, 128, dtype=form.dtype) for _ in range(2)]
    scales = {"k_scale": torch.tensor(1.0), "v_scale": torch.tensor(4.0)}
    flash_attn_with_kvcache(
        torch.zeros(1, 1, 1, 128).half(), *caches, halves, halves, cache_seqlens=0, **scales
    )
    for cache, scale in zip(caches, (1.0, 4.0), strict=True):
        want = form.rounded(halves.float() / scale).float()
        torch.testing.assert_close(cache.float(), want, rtol=0, atol=0, equal_nan=True)
    assert [float(scale) for scale in scales.values()] == [1.0, 4.0]


@FORMATS
@pytest.mark.parametrize("page_size", [None, 16])
@pytest.mark.parametrize("rotary", [False, True])
def test_append_rounds_to_the_nearest(form, page_size, rotary):
    spare = {"spare_columns": 2} if page_size else {"spare": 9}
    cache = Cache.of([33, 20], page_size, **spare)
    call = call_on(cache, form)
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
        for got, want in ((keys[-3:], k[b].double()), (values[-3:], v[b].double())):
            scale = want.abs().amax(-1, keepdim=True) / form.largest
            allowed = torch.maximum(1.001 * form.relative * want.abs(), form.absolute * scale)
            assert ((got - want).abs() <= allowed).all()
    for name, old in before.items():
        new, old = (x if x.dtype == torch.float else x.view(torch.uint8) for x in (call[name], old))
        changed = (new != old).reshape(*old.shape[:3], -1).any(-1).sum()
        assert changed <= 2 * 3 * 2, f"{name}: {changed} rows were written"
    assert out.isfinite().all()


@pytest.mark.parametrize(
    ("form", "limit"), [(INT8, 0.02), (E4M3, 0.06), (E5M2, 0.12)], ids=["int8", "e4m3", "e5m2"]
)
def test_error_of_the_format(form, limit):
    """Against the numbers before rounding: the error that a format costs, on normal numbers."""
    cache = Cache.dense([1000], head_dim=128)
    q = randn(1, 1, 8, 128)
    out = flash_attn_with_kvcache(q, **call_on(cache, form))
    k, v = cache.rows(0)
    want = attention(q, k[None], v[None]).out
    assert (out.double() - want).abs().max() < limit * want.abs().max() + 2e-3


@FORMATS
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"k_scale": None}, ValueError, "k_scale must be given with a cache of torch"),
        ({"v_scale": torch.ones(1, 25)}, ValueError, "v_scale must have the shape of the cache"),
        ({"k_scale": torch.ones(1, 25, 2).half()}, TypeError, "k_scale must have dtype torch.float32"),
        ({"q": randn(1, 1, 4, 64).bfloat16()}, TypeError, "cache is served for torch.float16 queries"),
        ({"v_cache": randn(1, 25, 2, 64)}, TypeError, "k_cache and v_cache must have the same dtype"),
    ],
)
def test_refused(form, change, error, text):
    call = {"q": randn(1, 1, 4, 64), **call_on(Cache.dense([20]), form)} | change
    with pytest.raises(error, match=text):
        flash_attn_with_kvcache(**call)


def test_scales_have_a_use():
    cache = Cache.dense([20])
    with pytest.raises(
        ValueError, match=r"k_scale is for an int8 or float8 cache; this one has torch.float16"
    ):
        flash_attn_with_kvcache(randn(1, 1, 4, 64), cache.k, cache.v, k_scale=torch.ones(1, 25, 2))
    call = call_on(cache, INT8) | {"k_scale": torch.ones(())}
    with pytest.raises(ValueError, match=r"k_scale must have the shape .* or for a float8 cache one element"):
        flash_attn_with_kvcache(randn(1, 1, 4, 64), **call)


def appended(form, q, k, v):
    """Attention to one key, out of a cache that it was appended to."""
    caches = [torch.zeros(1, 64, *x.shape[2:]).to(form.dtype) for x in (k, v)]
    scales = [torch.zeros(1, 64, x.shape[2]) for x in (k, v)]
    return flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=0, k_scale=scales[0], v_scale=scales[1])


@FORMATS
@pytest.mark.parametrize("largest", [1e-3, 1e-5, 3e-7])
def test_small_values_keep_their_digits(form, largest):
    q, k, v = (randn(1, 1, 2, 64, seed=seed) for seed in range(3))
    v = (v / v.abs().max() * largest).half()
    # Of one key the output is its value: the format's rounding, and fp16's own below 6e-5.
    scale = v.double().abs().amax(-1, keepdim=True) / form.largest
    allowed = torch.maximum(form.relative * v.double().abs(), form.absolute * scale)
    assert ((appended(form, q, k, v).double() - v.double()).abs() <= 1.01 * allowed + 2 * 2**-25).all()


@FORMATS
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_not_finite_stays_so(form, bad):
    q, k, v = (randn(1, 1, 1, 64, seed=seed) for seed in range(3))
    v[0, 0, 0, 7] = bad
    assert appended(form, q, k, v).isnan().all()


def bytes_of(form, head_dim, device="cpu"):
    """Arguments of a call that appends."""
    caches = {f"{name}_cache": torch.zeros(1, 25, 2, head_dim).to(form.dtype) for name in "kv"}
    scales = {f"{name}_scale": torch.zeros(1, 25, 2) for name in "kv"}
    new = {name: randn(1, 1, heads, head_dim) for name, heads in (("q", 4), ("k", 2), ("v", 2))}
    call = {**new, **caches, **scales, "cache_seqlens": torch.zeros(1, dtype=torch.int32)}
    return {name: x.to(device) for name, x in call.items()}


@FORMATS
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_head_dim_without_a_kernel_is_refused_before_the_append(form, device):
    call = bytes_of(form, 320, device)
    with pytest.raises(
        ValueError, match=rf"{form.dtype} cache .* at most 256; k_cache has shape \[1, 25, 2, 320\]"
    ):
        flash_attn_with_kvcache(**call)
    if device == "cpu":
        assert not call["k_cache"].view(torch.uint8).any()
        assert not call["k_scale"].any()


@FORMATS
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("change", ["strides", "offset"])
def test_rows_at_odd_bytes_are_refused(form, device, change):
    call = bytes_of(form, 64, device)
    size = {"strides": (1, 25, 2, 66), "offset": (1, 25, 2, 128)}[change]
    rows = torch.zeros(size, device=device).to(form.dtype)
    call["v_cache"] = rows[..., 1:65] if change == "offset" else rows[..., :64]
    with pytest.raises(ValueError, match=r"multiples of 4 bytes.* v_cache has strides"):
        flash_attn_with_kvcache(**call)
