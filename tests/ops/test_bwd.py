"""Gradients of attention against float64: head dims, lengths, masks, score changes, packs, layouts."""

import itertools
import math

import pytest
import torch

from flashattn_rocm.manifest import read_manifest
from tests.kit.attention import attention
from tests.kit.gradients import assert_gradients, math_gradients, op_gradients
from tests.kit.poison import embed

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
CAUSAL = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


def inputs(
    dtype=torch.float16,
    batch=1,
    seqlen_q=70,
    seqlen_k=100,
    heads=2,
    heads_kv=2,
    head_dim=64,
    head_dim_v=None,
    seed=1,
):
    """q, k, v and the gradient of out."""
    generator = torch.Generator().manual_seed(seed)
    head_dim_v = head_dim_v or head_dim

    def tensor(seqlen, n, columns):
        return torch.randn(batch, seqlen, n, columns, generator=generator).to(dtype)

    return (
        tensor(seqlen_q, heads, head_dim),
        tensor(seqlen_k, heads_kv, head_dim),
        tensor(seqlen_k, heads_kv, head_dim_v),
        tensor(seqlen_q, heads, head_dim_v),
    )


@DTYPES
@CAUSAL
@pytest.mark.parametrize("head_dim", [8, 32, 40, 64, 72, 80, 96, 100, 128, 160, 192, 250, 256])
def test_head_dims(dtype, causal, head_dim):
    assert_gradients(*inputs(dtype, head_dim=head_dim), causal=causal)


@DTYPES
@CAUSAL
@pytest.mark.parametrize("head_dim", [504, 512, 450, 264])
def test_head_dims_above_256(dtype, causal, head_dim):
    assert_gradients(*inputs(dtype, heads=2, heads_kv=1, head_dim=head_dim), causal=causal)


@DTYPES
@pytest.mark.parametrize(("head_dim", "head_dim_v"), [(512, 64), (64, 512), (512, 256)])
def test_one_head_dim_above_256(dtype, head_dim, head_dim_v):
    assert_gradients(*inputs(dtype, head_dim=head_dim, head_dim_v=head_dim_v), causal=True)


@DTYPES
@pytest.mark.parametrize(("head_dim", "head_dim_v"), [(192, 128), (64, 128), (128, 64), (72, 40)])
def test_v_has_its_own_head_dim(dtype, head_dim, head_dim_v):
    assert_gradients(*inputs(dtype, head_dim=head_dim, head_dim_v=head_dim_v), causal=True)


@DTYPES
@CAUSAL
@pytest.mark.parametrize(
    ("seqlen_q", "seqlen_k"),
    [(1, 1), (1, 130), (130, 1), (63, 65), (64, 64), (128, 192), (200, 70), (70, 200), (257, 255)],
)
def test_lengths(dtype, causal, seqlen_q, seqlen_k):
    tensors = inputs(dtype, seqlen_q=seqlen_q, seqlen_k=seqlen_k)
    assert_gradients(*tensors, causal=causal, few_keys=seqlen_k == 1)


@DTYPES
@pytest.mark.parametrize(("heads", "heads_kv"), [(4, 1), (6, 2), (3, 3)])
def test_query_heads_that_share_a_key_head(dtype, heads, heads_kv):
    assert_gradients(*inputs(dtype, batch=2, heads=heads, heads_kv=heads_kv), causal=True)


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
    one_key = window.get("window_left") == 0 or ("top_left" in window and seqlen_q == 1)
    assert_gradients(*inputs(dtype, seqlen_q=seqlen_q, seqlen_k=seqlen_k), **window, few_keys=one_key)


@DTYPES
@pytest.mark.parametrize("head_dim", [32, 64, 80, 128, 256, 512])
def test_softcap(dtype, head_dim):
    q, k, v, dout = inputs(dtype, head_dim=head_dim)
    assert_gradients(q * 4, k, v, dout, softcap=15.0, causal=True)


@DTYPES
@pytest.mark.parametrize("shape", [(4,), (2, 4)], ids=str)
def test_alibi(dtype, shape):
    slopes = torch.rand(shape, generator=torch.Generator().manual_seed(2))
    assert_gradients(*inputs(dtype, batch=2, heads=4), alibi_slopes=slopes, causal=True)
    assert_gradients(*inputs(dtype, batch=2, heads=4, seqlen_q=150), alibi_slopes=slopes)


@DTYPES
@pytest.mark.parametrize("shape", [(2, 4, 70, 100), (1, 4, 1, 100), (2, 1, 70, 1), (70, 100)], ids=str)
@pytest.mark.parametrize("kind", [torch.bool, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_bias(dtype, shape, kind):
    random = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    bias = random > -0.5 if kind == torch.bool else random.to(kind)
    assert_gradients(*inputs(dtype, batch=2, heads=4), attn_bias=bias)


@DTYPES
def test_changes_come_in_order(dtype):
    generator = torch.Generator().manual_seed(5)
    bias, slopes = torch.randn(70, 100, generator=generator), torch.rand(2, generator=generator)
    options = {"softcap": 5.0, "alibi_slopes": slopes, "attn_bias": bias, "causal": True}
    assert_gradients(*inputs(dtype), **options)


@DTYPES
def test_sinks(dtype):
    sinks = torch.tensor([-3.0, 0.0, 2.0, 30.0])
    assert_gradients(*inputs(dtype, heads=4), sinks=sinks)
    assert_gradients(*inputs(dtype, heads=4, seqlen_q=150), sinks=sinks.to(dtype), causal=True)


@DTYPES
@pytest.mark.parametrize("scale", [-0.2, 0.0, 1.0])
def test_scales(dtype, scale):
    assert_gradients(*inputs(dtype), softmax_scale=scale, causal=True)


@CAUSAL
def test_rows_that_see_no_key_have_no_gradient(causal):
    mask = torch.ones(70, 100, dtype=torch.bool)
    mask[3] = mask[69] = False
    mask[:, 7] = False
    dq, dk, dv = assert_gradients(*inputs(), attn_bias=mask, causal=causal)
    assert (dq[:, [3, 69]] == 0).all()
    assert (dk[:, 7] == 0).all()
    assert (dv[:, 7] == 0).all()
    q, k, v, dout = inputs(seqlen_q=150, seqlen_k=40)
    dq, _, _ = assert_gradients(q, k, v, dout, causal=True)
    assert (dq[:, :110] == 0).all()


@pytest.mark.parametrize(
    "shape", [(0, 5, 5, 2, 2), (2, 0, 5, 2, 2), (2, 5, 0, 2, 2), (2, 5, 5, 0, 0)], ids=str
)
def test_nothing_to_sum_gives_zeros(shape):
    batch, seqlen_q, seqlen_k, heads, heads_kv = shape
    tensors = inputs(
        batch=batch, seqlen_q=seqlen_q, seqlen_k=seqlen_k, heads=heads, heads_kv=heads_kv, head_dim=32
    )
    gradients = op_gradients(*tensors)
    for gradient, of in zip(gradients, tensors, strict=False):
        assert gradient.shape == of.shape
        if 0 in (seqlen_q, seqlen_k):
            assert (gradient == 0).all()


@pytest.mark.parametrize("magnitude", [1e-7, 1e-4, 1.0, 100.0])
@pytest.mark.parametrize("v_magnitude", [1e-3, 1.0, 1e4])
def test_f16_gradients_of_every_magnitude(magnitude, v_magnitude):
    q, k, v, dout = inputs()
    v, dout = v * v_magnitude, dout * magnitude
    want = math_gradients(q, k, v, dout, causal=True)
    for name, got, right in zip(
        ("dq", "dk", "dv"), op_gradients(q, k, v, dout, causal=True), want, strict=True
    ):
        # What fp16 can hold; delta is of the rounded out, so dS carries its rounding times dout.
        largest = right.abs().max().item()
        allowed = max(3e-3 * largest, 2**-24)
        error = (got.double() - right.clamp(-65504, 65504))[right.abs() < 65504].abs().max().item()
        assert error <= allowed, f"{name}: {error:.3e} > {allowed:.3e}"
        assert got[right.abs() > 65536].isinf().all()


def test_f16_rows_of_unlike_magnitudes():
    q, k, v, dout = inputs(seqlen_q=200, seqlen_k=200)
    dout *= 2.0 ** torch.randint(-12, 8, (1, 200, 2, 1), generator=torch.Generator().manual_seed(6))
    assert_gradients(q, k, v, dout, causal=True)


@pytest.mark.parametrize("magnitude", [1e-18, 1e-9, 1.0, 3e4, 1e12])
def test_bf16_of_every_magnitude(magnitude):
    q, k, v, dout = (x * magnitude for x in inputs(torch.bfloat16, head_dim=128))
    scale = magnitude**-2 * 128**-0.5
    got = op_gradients(q, k, v, dout, softmax_scale=scale)
    want = math_gradients(q, k, v, dout, softmax_scale=scale)
    for name, mine, right in zip(("dq", "dk", "dv"), got, want, strict=True):
        assert (mine.double() - right).abs().max() <= 2e-2 * right.abs().max(), name


def test_bf16_rows_of_unlike_magnitudes():
    generator = torch.Generator().manual_seed(6)
    q, k, v, dout = inputs(torch.bfloat16, seqlen_q=150, seqlen_k=200)
    for x in (q, k):
        x *= 2.0 ** torch.randint(-12, 3, x.shape[:3], generator=generator)[..., None]
    dout *= 2.0 ** torch.randint(-30, 20, dout.shape[:3], generator=generator)[..., None]
    assert_gradients(q, k, v, dout, causal=True)


@pytest.mark.parametrize("seqlen", [1024, pytest.param(4096, marks=pytest.mark.long)])
def test_error_does_not_grow_with_length(seqlen):
    assert_gradients(*inputs(seqlen_q=64, seqlen_k=seqlen, heads=1, heads_kv=1, head_dim=32))
    assert_gradients(*inputs(seqlen_q=seqlen, seqlen_k=64, heads=1, heads_kv=1, head_dim=32))


def test_log_sum_exp_of_more_keys():
    """As in ring attention: each part of the keys gets its share by the log-sum-exp of all."""
    q, k, v, dout = inputs(seqlen_k=200)
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v)
    parts = [
        torch.ops.flashattn_rocm.bwd(dout, q, k[:, keys], v[:, keys], out, lse)[:3]
        for keys in (slice(0, 90), slice(90, 200))
    ]
    dq = (parts[0][0].float() + parts[1][0].float()).half()
    dk, dv = (torch.cat([parts[0][i], parts[1][i]], 1) for i in (1, 2))
    assert_gradients(q, k, v, dout, (dq, dk, dv))


def option_gradient(name, value, tensors, precision=None, **options):
    """Of an option, by autograd: of the ops, or of the definition in a precision."""
    leaf = value.detach().clone().requires_grad_()
    q, k, v, dout = tensors
    if precision is None:
        out, _ = torch.ops.flashattn_rocm.fwd(q, k, v, **options, **{name: leaf})
        return torch.autograd.grad(out, leaf, dout)[0]
    out = attention(*(x.to(precision) for x in (q, k, v)), **options, **{name: leaf}, precision=precision).out
    return torch.autograd.grad(out, leaf, dout.to(precision))[0]


def assert_option_gradient(name, value, tensors, **options):
    got = option_gradient(name, value, tensors, **options)
    assert (got.shape, got.dtype) == (value.shape, value.dtype)
    want = option_gradient(name, value.double(), tensors, torch.float64, **options)
    theirs = option_gradient(name, value, tensors, tensors[0].dtype, **options).double()
    rounding = torch.finfo(tensors[0].dtype).eps / 2 * want.abs().max()
    error, allowed = (got.double() - want).abs().max(), 2 * (theirs - want).abs().max() + rounding
    assert error <= allowed, f"max abs error {error:.3e} > {allowed:.3e}"


@DTYPES
@pytest.mark.parametrize(
    "shape",
    [(2, 4, 70, 100), (1, 4, 70, 100), (2, 1, 70, 100), (70, 100), (2, 1, 1, 100), (4, 70, 1)],
    ids=str,
)
@pytest.mark.parametrize("kind", [torch.float32, torch.float16], ids=str)
def test_bias_gradient_sums_where_the_bias_broadcasts(dtype, shape, kind):
    bias = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(kind)
    assert_option_gradient("attn_bias", bias, inputs(dtype, batch=2, heads=4))


@DTYPES
def test_bias_gradient_beside_all_else(dtype):
    generator = torch.Generator().manual_seed(5)
    bias, slopes = torch.randn(70, 100, generator=generator), torch.rand(2, 4, generator=generator)
    options = {"softcap": 5.0, "alibi_slopes": slopes, "causal": True, "softmax_scale": 0.3}
    assert_option_gradient("attn_bias", bias, inputs(dtype, batch=2, heads=4), **options)
    one_more = inputs(dtype, batch=2, heads=4, head_dim=40, seqlen_q=33)
    assert_option_gradient("attn_bias", bias[:33, :].contiguous(), one_more, window_left=20)


def test_bias_gradient_is_zero_where_nothing_is_seen():
    bias = torch.zeros(1, 1, 150, 200)
    got = option_gradient("attn_bias", bias, inputs(seqlen_q=150, seqlen_k=200, batch=2), causal=True)
    hidden = ~torch.ones(150, 200, dtype=torch.bool).tril(50)
    assert (got[..., hidden] == 0).all()
    assert (got[..., ~hidden] != 0).any()


@DTYPES
@CAUSAL
def test_sinks_gradient(dtype, causal):
    sinks = torch.tensor([-3.0, 0.0, 2.0, 30.0])
    assert_option_gradient("sinks", sinks, inputs(dtype, batch=2, heads=4, seqlen_q=150), causal=causal)
    assert_option_gradient("sinks", sinks.to(dtype), inputs(dtype, heads=4), causal=causal)


def test_sinks_gradient_of_packs():
    tensors = inputs(heads=4, seqlen_q=60, seqlen_k=60)
    cu = torch.tensor([0, 25, 25, 60], dtype=torch.int32)
    pack = {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 35, "max_seqlen_k": 35}
    sinks = torch.tensor([-1.0, 0.0, 1.0, 2.0])
    got = option_gradient("sinks", sinks, tuple(torch.cat([x[0], x[0, :3]]) for x in tensors), **pack)
    parts = [tuple(x[:, rows] for x in tensors) for rows in (slice(0, 25), slice(25, 60))]
    want = sum(option_gradient("sinks", sinks, part) for part in parts)
    assert (got - want).abs().max() < 1e-5


# Lengths of queries and keys of each sequence.
PACKS = [([5, 0, 130, 64, 1], [70, 10, 64, 0, 200]), ([64], [64]), ([1] * 9, [33] * 9), ([0, 0], [0, 5])]


def offsets(lengths):
    return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)


@DTYPES
@CAUSAL
@pytest.mark.parametrize(("lengths_q", "lengths_k"), PACKS, ids=str)
def test_varlen_equals_each_sequence_alone(dtype, causal, lengths_q, lengths_k):
    generator = torch.Generator().manual_seed(7)
    rest = 3  # rows behind the last sequence
    q, dout = torch.randn(2, sum(lengths_q) + rest, 4, 64, generator=generator).to(dtype)
    k, v = torch.randn(2, sum(lengths_k) + rest, 2, 64, generator=generator).to(dtype)
    used = torch.tensor([length // 2 for length in lengths_k], dtype=torch.int32)
    cu_q, cu_k = offsets(lengths_q), offsets(lengths_k)
    pack = {"cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k, "causal": causal}
    pack |= {"max_seqlen_q": max(lengths_q), "max_seqlen_k": max(lengths_k)}
    for extra in ({}, {"seqused_k": used}):
        dq, dk, dv = op_gradients(q, k, v, dout, **pack, **extra)
        covered = [torch.zeros(len(x), dtype=torch.bool) for x in (q, k)]
        for n, (rows, keys) in enumerate(zip(lengths_q, lengths_k, strict=True)):
            keys = keys // 2 if extra else keys
            mine, theirs = slice(cu_q[n], cu_q[n] + rows), slice(cu_k[n], cu_k[n] + keys)
            covered[0][mine] = covered[1][theirs] = True
            alone = (q[None, mine], k[None, theirs], v[None, theirs], dout[None, mine])
            assert_gradients(*alone, (dq[None, mine], dk[None, theirs], dv[None, theirs]), causal=causal)
        assert (dq[~covered[0]] == 0).all()
        assert (dk[~covered[1]] == 0).all()
        assert (dv[~covered[1]] == 0).all()


@DTYPES
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3)], ids=str)
@pytest.mark.parametrize(("pad", "offset"), [(8, 16), (2, 2), (1, 3)], ids=["chunks", "dwords", "halves"])
def test_strides(dtype, order, pad, offset):
    tensors = inputs(dtype, batch=2, heads=4)
    poisoned = [embed(x, order, pad, offset) for x in tensors]
    got = op_gradients(*(each.view for each in poisoned), causal=True)
    assert_gradients(*tensors, got, causal=True)
    for each in poisoned:
        each.assert_unchanged()


def test_results_go_where_they_are_wanted():
    tensors = inputs(batch=2)
    out, lse = torch.ops.flashattn_rocm.fwd(*tensors[:3])
    want = torch.ops.flashattn_rocm.bwd(tensors[3], *tensors[:3], out, lse)[:3]
    targets = [embed(torch.zeros_like(x), (0, 2, 1, 3)) for x in tensors[:3]]
    torch.ops.flashattn_rocm.bwd_into(
        tensors[3], *tensors[:3], out, lse, *(target.view for target in targets)
    )
    for target, gradient in zip(targets, want, strict=True):
        assert target.view.equal(gradient)
        beside = target.buffer.numel() - target.view.numel()
        assert int(target.buffer.isnan().sum()) == beside


def reach_of_a_query(head_dim):
    """Keys behind a query that its gradient may touch under a causal mask, by the largest tile.

    0 times NaN is NaN, so NaN reaches all keys of the blocks that visit the query's block: that block ends
    less than block_n rows behind it, and a block of keys that begins before its end ends block_m later.
    """
    tiles = [row for row in read_manifest()["archs"]["gfx906"] if row["name"].startswith("flashattn_dkdv_")]
    return max(row["block_m"] + row["block_n"] for row in tiles if row["head_dim"] == head_dim)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=["f16", "bf16", "f32"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("mask", ["full", "causal", "window", "bool", "bias"])
def test_nan_and_inf_in_dout_reach_their_row_and_the_keys_that_it_sees(dtype, value, mask):
    q, k, v, dout = inputs(dtype, seqlen_q=200, seqlen_k=200)
    seen = torch.ones(200, 200, dtype=torch.bool)
    if mask == "causal":
        seen, options = seen.tril(), {"causal": True}
    elif mask == "window":
        seen, options = seen.triu(-20).tril(5), {"window_left": 20, "window_right": 5}
    elif mask in ("bool", "bias"):
        seen = torch.rand(200, 200, generator=torch.Generator().manual_seed(4)) > 0.5
        bias = torch.zeros(200, 200).masked_fill(~seen, -math.inf)
        options = {"attn_bias": seen if mask == "bool" else bias}
    else:
        options = {}
    clean = op_gradients(q, k, v, dout, **options)
    dout[0, 70, 0, 3] = value
    dq, dk, dv = op_gradients(q, k, v, dout, **options)

    assert (~dq[0, 70, 0].isfinite()).all()
    rows = torch.arange(200) != 70
    assert dq[:, rows].equal(clean[0][:, rows])
    keys = seen[70]
    assert (~dk[0, keys, 0].isfinite()).all()
    assert (~dv[0, keys, 0, 3].isfinite()).all()
    columns = torch.arange(64) != 3
    for got, before in zip((dq, dk, dv), clean, strict=True):
        assert got[:, :, 1].equal(before[:, :, 1])  # the other head
    for got, before in (
        (dk[0, ~keys, 0], clean[1][0, ~keys, 0]),
        (dv[0, ~keys, 0], clean[2][0, ~keys, 0]),
        (dv[0, :, 0][:, columns], clean[2][0, :, 0][:, columns]),
    ):
        # Where blocks hold such a row the sums have another order.
        torch.testing.assert_close(got, before, rtol=0, atol=2e-3 if dtype != torch.bfloat16 else 2e-2)


def test_inf_in_dout_reaches_no_padding():
    """Keys of the block that do not exist, and sequences beside it in a pack."""
    q, k, v, dout = (x[0] for x in inputs(seqlen_q=60, seqlen_k=60))
    cu = torch.tensor([0, 25, 60], dtype=torch.int32)
    pack = {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 35, "max_seqlen_k": 35}
    clean = op_gradients(q, k, v, dout, **pack)
    dout[24] = math.inf
    for got, before in zip(op_gradients(q, k, v, dout, **pack), clean, strict=True):
        assert got[25:].equal(before[25:])


@pytest.mark.parametrize("head_dim", [32, 40, 64, 100, 128, 160, 192, 256, 512])
def test_one_key_gives_rows_no_gradient(head_dim):
    """delta is summed as dP is: of one key they are the same number."""
    dq, dk, _ = op_gradients(*inputs(seqlen_q=40, seqlen_k=1, heads=2, head_dim=head_dim))
    assert not dq.any()
    assert not dk.any()


@pytest.mark.parametrize("heads_kv", [4, 2])
def test_heads_that_take_turns(heads_kv):
    """Rows 4 KiB apart put a head on one channel of L2; then blocks of several heads are under way."""
    seqlen, room = 1400, 16
    options = {"window_left": 20, "window_right": 3}
    q, k, v, dout = inputs(seqlen_q=seqlen, seqlen_k=seqlen, heads=room, heads_kv=room, head_dim=128, seed=8)
    tensors = (q[:, :, :4], k[:, :, :heads_kv], v[:, :, :heads_kv], dout[:, :, :4])
    assert_gradients(*tensors, **options)


@DTYPES
def test_runs_are_bitwise_equal(dtype):
    tensors = inputs(dtype, seqlen_q=150, heads=4)
    first = op_gradients(*tensors, causal=True)
    assert all(a.equal(b) for a, b in zip(first, op_gradients(*tensors, causal=True), strict=True))


def test_large_logits():
    q, k, v, dout = inputs()
    assert_gradients(q * 30, k, v, dout, causal=True)


def test_inputs_whose_rows_overlap():
    """Windows that slide over one line: torch lays a tensor like them out in another order of dimensions."""
    lines = torch.randn(3, 200, generator=torch.Generator().manual_seed(1)).half()
    q, k, v = (line.unfold(0, 64, 1)[:8][None, :, None] for line in lines)
    dout = inputs(seqlen_q=8, heads=1, heads_kv=1)[3]
    assert_gradients(q, k, v, dout, op_gradients(q, k, v, dout))


def test_one_key_excuses_no_more_than_the_rounding_of_delta():
    """Of rows that see themselves alone dq and dk are 0 but for that rounding, 0.014 here at most."""
    window = {"window_left": 0, "window_right": 0}
    q, k, v, dout = inputs(seqlen_q=150, seqlen_k=150)
    dq, dk, dv = assert_gradients(q, k, v, dout, **window, few_keys=True)
    for spoiled, name in ((dq, "dq"), (dk, "dk")):
        spoiled[0, 5, 0, 3] += 0.05
        with pytest.raises(AssertionError, match=name):
            assert_gradients(q, k, v, dout, (dq, dk, dv), **window, few_keys=True)
        spoiled[0, 5, 0, 3] = 0.0
