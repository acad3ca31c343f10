"""The op under torch.autocast."""

import pytest
import torch

from flashattn_rocm import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

DTYPES = [torch.float16, torch.bfloat16]


def autocast(dtype: torch.dtype, **options: bool) -> torch.autocast:
    return torch.autocast(DEVICE.type, dtype, **options)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_float32_takes_autocasts_dtype(dtype):
    q, k, v = (x.float() for x in make_qkv(2, 40, 50, 4, 2))
    with autocast(dtype):
        out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    want = flash_attn_func(*(x.to(dtype) for x in (q, k, v)), causal=True, return_attn_probs=True)
    assert out.dtype == dtype
    assert out.equal(want[0])
    assert lse.equal(want[1])


def test_mixed_dtypes_become_one():
    q, k, v = make_qkv()
    with autocast(torch.float16):
        out = flash_attn_func(q.float(), k, v.bfloat16())
    assert out.equal(flash_attn_func(q, k, v.bfloat16().half()))


def test_outputs_of_a_linear_layer_pass_through():
    layer = torch.nn.Linear(64, 3 * 64, device=DEVICE)
    x = randn(2, 30, 64, seed=1).float()
    with autocast(torch.bfloat16):
        q, k, v = layer(x).unflatten(-1, (3, 2, 32)).unbind(2)
        assert q.dtype == torch.bfloat16
        out = flash_attn_func(q.detach(), k.detach(), v.detach())
    assert out.equal(flash_attn_func(q.detach(), k.detach(), v.detach()))


def test_float32_bias_keeps_its_precision():
    q, k, v = (x.float() for x in make_qkv())
    bias = randn(2, 40, 40, seed=2).float() + 1000.0  # fp16 has steps of 1/2 there
    with autocast(torch.float16):
        out = flash_attn_func(q, k, v, attn_bias=bias)
    assert out.equal(flash_attn_func(q.half(), k.half(), v.half(), attn_bias=bias))


def test_s_dmask():
    q, k, v = make_qkv()
    torch.manual_seed(1)
    want = flash_attn_func(q, k, v, 0.5, return_attn_probs=True)
    torch.manual_seed(1)
    with autocast(torch.float16):
        got = flash_attn_func(q.float(), k.float(), v.float(), 0.5, return_attn_probs=True)
    assert all(one.equal(other) for one, other in zip(got, want, strict=True))


def test_packed_sequences():
    q, k, v = (randn(12, 2, 32, seed=s).float() for s in range(3))
    cu = torch.tensor([0, 5, 12], dtype=torch.int32, device=DEVICE)
    with autocast(torch.float16):
        out = flash_attn_varlen_func(q, k, v, cu, cu, 7, 7)
    assert out.equal(flash_attn_varlen_func(q.half(), k.half(), v.half(), cu, cu, 7, 7))


def test_float64_is_refused_as_without():
    q, k, v = (x.double() for x in make_qkv())
    with autocast(torch.float16), pytest.raises(TypeError, match=r"torch\.float64"):
        flash_attn_func(q, k, v)


def test_switched_off_inside():
    q, k, v = make_qkv()
    with autocast(torch.bfloat16), autocast(torch.bfloat16, enabled=False):
        out = flash_attn_func(q, k, v)
    assert out.dtype == torch.float16


def test_compiled():
    torch._dynamo.reset()
    q, k, v = (x.float() for x in make_qkv())

    @torch.compile(fullgraph=True, backend="aot_eager")
    def attend(q, k, v):
        with autocast(torch.float16):
            return flash_attn_func(q, k, v)

    assert attend(q, k, v).equal(flash_attn_func(q.half(), k.half(), v.half()))


@pytest.mark.parametrize(
    "cache_dtype", [torch.float16, torch.bfloat16, torch.int8, torch.float8_e5m2], ids=str
)
def test_what_meets_a_cache_takes_its_dtype(cache_dtype):
    bytes_ = cache_dtype.itemsize == 1
    dtype = torch.float16 if bytes_ else cache_dtype
    scales = {f"{name}_scale": torch.zeros(1, 20, 2) for name in ("k", "v")}
    angles = torch.rand(20, 16, generator=torch.Generator().manual_seed(1))

    def attend(x, **keywords):
        caches = [torch.zeros(1, 20, 2, 64).to(cache_dtype) for _ in range(2)]
        keywords |= scales if bytes_ else {}
        turn = {"rotary_cos": angles.to(x.dtype), "rotary_sin": angles.to(x.dtype)}
        q, k, v = x.split([4, 2, 2], 2)
        return flash_attn_with_kvcache(q, *caches, k, v, cache_seqlens=3, **turn, **keywords)

    x = randn(1, 2, 8, 64, seed=1).float()
    with autocast(torch.bfloat16):
        got = attend(x)
    assert got.dtype == dtype
    assert got.equal(attend(x.to(dtype)))
