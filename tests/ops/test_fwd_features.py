"""What the op serves beyond plain attention: windows, score changes, sinks, varlen, dtypes, head dims."""

import itertools
import math

import pytest
import torch

from tests.kit.attention import attention
from tests.kit.tolerance import assert_attention

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32], ids=["f16", "bf16", "f32"]
)


def qkv(dtype, batch=2, seqlen_q=70, seqlen_k=150, heads=4, heads_kv=2, head_dim=64, head_dim_v=None, seed=1):
    generator = torch.Generator().manual_seed(seed)

    def tensor(seqlen, n, columns):
        return torch.randn(batch, seqlen, n, columns, generator=generator).to(dtype)

    return (
        tensor(seqlen_q, heads, head_dim),
        tensor(seqlen_k, heads_kv, head_dim),
        tensor(seqlen_k, heads_kv, head_dim_v or head_dim),
    )


def check(q, k, v, **options):
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, **options)
    assert_attention(q, k, v, out, lse, **options)
    return out


@DTYPES
@pytest.mark.parametrize("head_dim", [8, 40, 72, 80, 96, 104, 160, 184, 192, 256, 504, 512, 100, 250])
def test_head_dims(dtype, head_dim):
    check(*qkv(dtype, batch=1, head_dim=head_dim), causal=True)


@DTYPES
@pytest.mark.parametrize(("head_dim", "head_dim_v"), [(192, 128), (64, 128), (128, 64), (72, 40)])
def test_v_has_its_own_head_dim(dtype, head_dim, head_dim_v):
    out = check(*qkv(dtype, head_dim=head_dim, head_dim_v=head_dim_v))
    assert out.shape[-1] == head_dim_v


@DTYPES
@pytest.mark.parametrize(
    "window",
    [
        {"window_left": 20, "window_right": 5},
        {"window_left": 0, "window_right": 0},
        {"window_left": 33, "causal": True},
        {"window_right": 40},
        {"window_left": 64, "window_right": 64, "top_left": True},
        {"causal": True, "top_left": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), [(150, 150), (70, 200), (200, 70), (1, 130)])
def test_windows(dtype, window, seqlen_q, seqlen_k):
    check(*qkv(dtype, seqlen_q=seqlen_q, seqlen_k=seqlen_k), **window)


def test_a_window_skips_blocks(monkeypatch):
    from flashattn_rocm import simulated_instructions

    def executed(**window):
        before = simulated_instructions()
        check(*qkv(torch.float16, batch=1, seqlen_q=128, seqlen_k=2048), **window)
        return simulated_instructions() - before

    assert executed(window_left=64, window_right=0) < executed() / 4


@DTYPES
@pytest.mark.parametrize("head_dim", [32, 64, 80, 128, 256])
def test_softcap(dtype, head_dim):
    q, k, v = qkv(dtype, head_dim=head_dim)
    check(q * 4, k, v, softcap=15.0, causal=True)


@DTYPES
@pytest.mark.parametrize("shape", [(4,), (2, 4)], ids=str)
def test_alibi(dtype, shape):
    slopes = torch.rand(shape, generator=torch.Generator().manual_seed(2))
    check(*qkv(dtype), alibi_slopes=slopes, causal=True)
    check(*qkv(dtype, seqlen_q=150, seqlen_k=70), alibi_slopes=slopes)


@DTYPES
@pytest.mark.parametrize(
    "shape", [(2, 4, 70, 150), (1, 4, 1, 150), (2, 1, 70, 1), (70, 150), (150,), (1,)], ids=str
)
@pytest.mark.parametrize("kind", [torch.bool, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_bias_of_every_broadcast(dtype, shape, kind):
    random = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    check(*qkv(dtype), attn_bias=random > -0.5 if kind == torch.bool else random.to(kind))


@DTYPES
def test_bias_is_read_where_it_lies(dtype):
    bias = torch.randn(2, 150, 4, 140, generator=torch.Generator().manual_seed(4)).permute(0, 2, 3, 1)
    check(*qkv(dtype), attn_bias=bias[:, :, ::2], causal=True)


def test_a_row_that_a_mask_hides_whole_is_zero():
    mask = torch.ones(70, 150, dtype=torch.bool)
    mask[3] = mask[69] = False
    out = check(*qkv(torch.float16), attn_bias=mask)
    assert (out[:, [3, 69]] == 0).all()


@DTYPES
def test_changes_come_in_order(dtype):
    generator = torch.Generator().manual_seed(5)
    bias = torch.randn(70, 150, generator=generator)
    check(
        *qkv(dtype), softcap=5.0, alibi_slopes=torch.rand(4, generator=generator), attn_bias=bias, causal=True
    )


@DTYPES
def test_sinks(dtype):
    sinks = torch.tensor([-3.0, 0.0, 2.0, 30.0])
    check(*qkv(dtype), sinks=sinks)
    # Rows that see no key: the sink is all there is.
    check(*qkv(dtype, seqlen_q=150, seqlen_k=70), sinks=sinks.to(dtype), causal=True)


@pytest.mark.parametrize("magnitude", [1e-18, 1e-9, 1.0, 3e4, 1e12, 1e18])
@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 2e-2), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_every_magnitude(dtype, error, magnitude, sign):
    q, k, v = (x * magnitude for x in qkv(dtype, head_dim=128))
    scale = sign * magnitude**-2 * 128**-0.5
    out, _ = torch.ops.flashattn_rocm.fwd(q, k, v, scale)
    want = attention(q, k, v, softmax_scale=scale).out
    assert ((out.double() - want).abs().max() / magnitude) < error


def test_bf16_rows_of_unlike_magnitudes():
    generator = torch.Generator().manual_seed(6)
    q, k, v = qkv(torch.bfloat16)
    for x in (q, k):
        x *= 2.0 ** torch.randint(-12, 3, x.shape[:3], generator=generator)[..., None]
    v *= 2.0 ** torch.randint(-30, 20, (*v.shape[:1], 1, 1, 1), generator=generator)
    check(q, k, v, causal=True)


# Lengths of queries and keys of each sequence.
PACKS = [
    ([5, 0, 130, 64, 1], [70, 10, 64, 0, 200]),
    ([64], [64]),
    ([1] * 9, [33] * 9),
    ([0, 0], [0, 5]),
    ([300, 3], [3, 300]),
]


def offsets(lengths):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)


@DTYPES
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("lengths_q", "lengths_k"), PACKS, ids=str)
def test_varlen_equals_each_sequence_alone(dtype, causal, lengths_q, lengths_k):
    generator = torch.Generator().manual_seed(7)
    q = torch.randn(sum(lengths_q), 4, 64, generator=generator).to(dtype)
    k, v = torch.randn(2, sum(lengths_k), 2, 64, generator=generator).to(dtype)
    used = torch.tensor([length // 2 for length in lengths_k], dtype=torch.int32)
    slopes = torch.rand(len(lengths_q), 4, generator=generator)
    cu_q, cu_k = offsets(lengths_q), offsets(lengths_k)
    pack = {"cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k}
    pack |= {"max_seqlen_q": max(lengths_q), "max_seqlen_k": max(lengths_k)}
    for extra in ({}, {"seqused_k": used}, {"window_left": 16}, {"alibi_slopes": slopes}):
        out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, causal=causal, **pack, **extra)
        assert lse.shape == (4, sum(lengths_q))
        options = {name: value for name, value in extra.items() if name != "seqused_k"}
        for n, (rows, keys) in enumerate(zip(lengths_q, lengths_k, strict=True)):
            if rows == 0:
                continue
            keys = keys // 2 if "seqused_k" in extra else keys
            if "alibi_slopes" in extra:
                options["alibi_slopes"] = slopes[n]
            mine, theirs = slice(cu_q[n], cu_q[n] + rows), slice(cu_k[n], cu_k[n] + keys)
            alone = (q[None, mine], k[None, theirs], v[None, theirs])
            assert_attention(*alone, out[None, mine], lse[None, :, mine], causal=causal, **options)


def test_nan_beyond_the_used_keys_is_never_read():
    q, k, v = qkv(torch.float16)
    k[:, 90:] = v[:, 90:] = math.nan
    used = torch.tensor([90, 47], dtype=torch.int32)
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, seqused_k=used)
    for n, keys in enumerate(used):
        one = slice(n, n + 1)
        assert_attention(q[one], k[one, :keys], v[one, :keys], out[one], lse[one])
