"""What is special about gradients in fp32: their error, finite differences, and no fp16 in between."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_func
from tests.kit.attention import attention
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE
from tests.kit.gradients import assert_gradients, math_gradients, op_gradients
from tests.kit.poison import embed

CAUSAL = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


def f32(batch=1, seqlen_q=70, seqlen_k=100, heads=2, heads_kv=2, head_dim=64, seed=1):
    """q, k, v and the gradient of out, of numbers that fp16 does not hold."""
    qkv = make_qkv(batch, seqlen_q, seqlen_k, heads, heads_kv, head_dim, seed)
    tensors = (*qkv, randn(batch, seqlen_q, heads, head_dim, seed=97))
    generator = torch.Generator().manual_seed(seed)
    return tuple(x.float() + 1e-4 * torch.randn(x.shape, generator=generator).to(x.device) for x in tensors)


def leaves(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


def relative_errors(got, want):
    return [
        ((mine.double() - right).abs().max() / right.abs().max()).item()
        for mine, right in zip(got, want, strict=True)
    ]


# By 16 bytes (rows of 4 numbers) and element by element, of each head dim that has kernels.
@CAUSAL
@pytest.mark.parametrize("head_dim", [8, 64, 100, 128, 160, 256, 512, 30, 101, 201, 259])
def test_head_dims(causal, head_dim):
    tensors = f32(heads=2, heads_kv=1, head_dim=head_dim)
    got = assert_gradients(*tensors, causal=causal)
    assert max(relative_errors(got, math_gradients(*tensors, causal=causal))) < 1e-5


@pytest.mark.parametrize(("head_dim", "head_dim_v"), [(192, 128), (64, 128), (128, 64), (72, 40), (512, 64)])
def test_v_has_its_own_head_dim(head_dim, head_dim_v):
    q, k, _, _ = f32(head_dim=head_dim)
    _, _, v, dout = f32(head_dim=head_dim_v)
    assert_gradients(q, k, v, dout, causal=True)


# Blocks of 64, 32 and 16 rows end before, at and after these.
@CAUSAL
@pytest.mark.parametrize("head_dim", [64, 128, 256, 512])
@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), [(1, 1), (15, 17), (64, 64), (130, 129), (33, 200)])
def test_lengths(causal, head_dim, seqlen_q, seqlen_k):
    tensors = f32(seqlen_q=seqlen_q, seqlen_k=seqlen_k, head_dim=head_dim, heads=1, heads_kv=1)
    assert_gradients(*tensors, causal=causal, few_keys=seqlen_k == 1)


@pytest.mark.parametrize("head_dim", [64, 128, 256, 512, 30])
def test_all_that_changes_scores(head_dim):
    options = {
        "alibi_slopes": randn(2, 4, seed=5).float().abs(),
        "attn_bias": randn(1, 4, 70, 100, seed=6).float(),
        "sinks": randn(4, seed=7).float(),
        "window_left": 50,
        "softcap": 4.0,
        "dropout_p": 0.3,
        "rng_state": torch.tensor([3, 2**33 + 5], device=DEVICE),
    }
    assert_gradients(*f32(2, heads=4, heads_kv=2, head_dim=head_dim), **options)


@pytest.mark.parametrize(
    "options", [{"window_left": 20, "window_right": 5}, {"causal": True, "top_left": True}], ids=str
)
def test_windows(options):
    assert_gradients(*f32(seqlen_q=150, seqlen_k=130), **options)


@pytest.mark.parametrize("shape", [(2, 4, 70, 100), (70, 100), (2, 1, 1, 100)], ids=str)
def test_gradients_of_bias_and_sinks(shape):
    q, k, v, dout = f32(2, heads=4)
    bias, sinks = randn(*shape, seed=6).float(), randn(4, seed=7).float()
    got = leaves(bias, sinks)
    out, _ = torch.ops.flashattn_rocm.fwd(q, k, v, attn_bias=got[0], sinks=got[1])
    gradients = torch.autograd.grad(out, got, dout)
    exact = leaves(bias.double(), sinks.double())
    out = attention(q, k, v, attn_bias=exact[0], sinks=exact[1]).out
    want = torch.autograd.grad(out, exact, dout.double())
    assert max(relative_errors(gradients, want)) < 1e-5


def test_packed_sequences_and_packed_operands():
    qkv = f32(seqlen_q=100, heads=2)[:3]
    (packed,) = leaves(torch.stack(qkv, 3)[0].transpose(1, 2).contiguous())  # (100, 3, 2, 64)
    cu = torch.tensor([0, 33, 33, 100], dtype=torch.int32, device=DEVICE)
    from flashattn_rocm import flash_attn_varlen_qkvpacked_func

    out = flash_attn_varlen_qkvpacked_func(packed, cu, 67, causal=True)
    dout = randn(100, 2, 64, seed=8).float()
    (got,) = torch.autograd.grad(out, packed, dout)
    for rows in (slice(0, 33), slice(33, 100)):
        alone = [x[None, rows] for x in packed.detach().unbind(1)]
        mine = tuple(x[None] for x in got[rows].unbind(1))
        assert_gradients(*alone, dout[None, rows], mine, causal=True)


@pytest.mark.parametrize("which", ["q", "k", "v", "attn_bias", "sinks"])
@pytest.mark.parametrize("dropout_p", [0.0, 0.4])
def test_finite_differences_of_the_kernels(which, dropout_p):
    """As torch.autograd.gradcheck, of the fp32 forward: steps along a direction, and the gradient's share.

    The forward is off by some 1e-7, so the difference of two is by 1e-7 / step beside the step squared.
    """
    q, k, v, dout = f32(seqlen_q=40, seqlen_k=50, head_dim=32)
    tensors = {"q": q, "k": k, "v": v, "attn_bias": randn(2, 40, 50, seed=6).float()}
    tensors |= {"sinks": randn(2, seed=7).float()}
    options = {"causal": True, "softcap": 5.0, "dropout_p": dropout_p}
    options |= {"rng_state": torch.tensor([3, 4], device=DEVICE)} if dropout_p else {}

    def loss(values):
        out, _ = torch.ops.flashattn_rocm.fwd(**values, **options)
        return (out.double() * dout.double()).sum()

    tracked = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    (gradient,) = torch.autograd.grad(loss(tracked), tracked[which])
    step = 2.0**-6
    for seed in range(3):
        direction = randn(*tensors[which].shape, seed=100 + seed).float().sign()
        ends = [loss(tensors | {which: tensors[which] + sign * step * direction}) for sign in (1, -1)]
        difference = (ends[0] - ends[1]) / (2 * step)
        share = (gradient.double() * direction.double()).sum()
        spread = (gradient.double().square().sum()).sqrt()  # of the share over directions
        assert abs(difference - share) < 2e-3 * spread, f"{difference} is not {share}"


@pytest.mark.parametrize("seqlen", [64, 1024, pytest.param(8192, marks=pytest.mark.long)])
def test_the_error_does_not_grow_with_the_length(seqlen):
    for seqlen_q, seqlen_k in ((32, seqlen), (seqlen, 32)):
        q, k, v, dout = f32(seqlen_q=seqlen_q, seqlen_k=seqlen_k, heads=1, heads_kv=1)
        dout += 1  # or the sums themselves stay small
        errors = relative_errors(op_gradients(q, k, v, dout), math_gradients(q, k, v, dout))
        assert max(errors) < 5e-6


@pytest.mark.parametrize("head_dim", [64, 30])
def test_nothing_passes_through_fp16(head_dim):
    """Of magnitudes that fp16 does not hold, whose products with softmax_scale fp32 does."""
    tensors = f32(head_dim=head_dim)
    for magnitude in (1e-15, 1e12):
        scale = magnitude**-2 * 0.1
        scaled = tuple(x * magnitude for x in tensors)
        got = op_gradients(*scaled, softmax_scale=scale)
        assert max(relative_errors(got, math_gradients(*scaled, softmax_scale=scale))) < 1e-5


@pytest.mark.parametrize(("head_dim", "pad", "offset"), [(64, 4, 4), (64, 1, 3), (30, 1, 3), (259, 1, 3)])
def test_poison_around_operands_is_not_read(head_dim, pad, offset):
    tensors = f32(2, 21, 35, 2, 1, head_dim)
    poisoned = [embed(x, pad=pad, offset=offset) for x in tensors]
    got = op_gradients(*(each.view for each in poisoned), causal=True)
    assert_gradients(*tensors, got, causal=True)
    for each in poisoned:
        each.assert_unchanged()


def test_nan_in_dout_reaches_its_row():
    q, k, v, dout = f32()
    clean = op_gradients(q, k, v, dout)
    dout[0, 9, 0, 2] = math.nan
    dq, dk, dv = op_gradients(q, k, v, dout)
    assert dq[0, 9, 0].isnan().all()
    rows = torch.arange(70) != 9
    assert dq[:, rows].equal(clean[0][:, rows])
    for got, before in ((dk, clean[1]), (dv, clean[2])):
        assert got[:, :, 1].equal(before[:, :, 1])


def test_runs_are_bitwise_equal():
    tensors = f32(seqlen_q=150, heads=4)
    first = op_gradients(*tensors, causal=True)
    assert all(a.equal(b) for a, b in zip(first, op_gradients(*tensors, causal=True), strict=True))


@pytest.mark.parametrize("use_sdpa", [False, True])
def test_autograd(use_sdpa):
    q, k, v, dout = f32(seqlen_k=70)
    tracked = leaves(q, k, v)
    if use_sdpa:
        import flashattn_rocm

        with flashattn_rocm.sdpa(fallback=False) as counts:
            turned = [x.transpose(1, 2) for x in tracked]
            out = torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=True).transpose(1, 2)
        assert counts.served == 1
    else:
        out = flash_attn_func(*tracked, causal=True)
    got = torch.autograd.grad(out, tracked, dout)
    assert all(x.dtype == torch.float32 for x in got)
    assert_gradients(q, k, v, dout, got, causal=True)


def test_opcheck():
    q, k, v, dout = f32(seqlen_q=9, seqlen_k=20)
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, causal=True)
    torch.library.opcheck(torch.ops.flashattn_rocm.bwd.default, (dout, q, k, v, out, lse), {"causal": True})
