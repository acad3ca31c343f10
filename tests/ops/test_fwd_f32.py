"""What is special about fp32: 1e-5, its own rows of 16 bytes, no fp16 in between."""

import math

import pytest
import torch
from torch import Tensor

from flashattn_rocm import flash_attn_func
from tests.kit.attention import attention
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE
from tests.kit.poison import embed
from tests.kit.tolerance import assert_attention, assert_contract


def f32(
    batch: int, seqlen_q: int, seqlen_k: int, heads: int, heads_kv: int, head_dim: int, seed: int
) -> tuple[Tensor, ...]:
    """As make_qkv, of numbers that fp16 does not hold."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        x.float() + 1e-4 * torch.randn(x.shape, generator=generator).to(x.device)
        for x in make_qkv(batch, seqlen_q, seqlen_k, heads, heads_kv, head_dim, seed)
    )


# Blocks of 64, 32 and 16 keys end before, at and after these.
@pytest.mark.parametrize("head_dim", [32, 64, 128, 256, 512])
@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), [(1, 1), (15, 17), (64, 64), (130, 129), (33, 200)])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_lengths(head_dim, seqlen_q, seqlen_k, causal):
    q, k, v = f32(2, seqlen_q, seqlen_k, 2, 1, head_dim, seed=1)
    out, _ = assert_contract(q, k, v, causal=causal)
    want = attention(*(x.cpu() for x in (q, k, v)), causal=causal).out
    assert (out.cpu().double() - want).abs().max() <= 1e-5


@pytest.mark.parametrize("seqlen", [64, 1024, 16384])
def test_the_error_does_not_grow_with_the_length(seqlen):
    q, k, v = f32(1, 32, seqlen, 1, 1, 64, seed=2)
    v += 1  # or the outputs themselves shrink
    out, lse, _ = flash_attn_func(q, k, v, return_attn_probs=True)
    want = attention(*(x.cpu() for x in (q, k, v)))
    assert (out.cpu().double() - want.out).abs().max() < 2e-6
    assert (lse.cpu().double() - want.lse).abs().max() < 4e-6


@pytest.mark.parametrize("head_dim", [64, 100, 30, 1, 7, 130, 259])
@pytest.mark.parametrize(("pad", "offset"), [(4, 4), (1, 3)])
def test_poison_around_inputs_is_not_read(head_dim, pad, offset):
    poisoned = [embed(x, pad=pad, offset=offset) for x in f32(2, 21, 35, 2, 1, head_dim, seed=3)]
    assert_contract(*(each.view for each in poisoned), causal=True)
    for each in poisoned:
        each.assert_unchanged()


def test_rows_of_4_numbers_are_moved_by_16_bytes():
    from flashattn_rocm.dispatch import explain_dispatch

    shape = {"head_dim": 64, "seqlen_q": 64, "heads": 2, "dtype": torch.float32}
    card = {"arch": "gfx906", "compute_units": 60}
    assert "_elements_" not in explain_dispatch(**shape, **card)[0].kernel
    assert "flashattn_fwd_f32_d64" in explain_dispatch(**shape, **card)[0].kernel


def test_nothing_passes_through_fp16():
    big = 1e30
    q, k, v = f32(1, 40, 70, 2, 2, 64, seed=4)
    out = flash_attn_func(q, k, v * big)
    want = attention(*(x.cpu() for x in (q, k, v))).out
    assert ((out.cpu().double() / big) - want).abs().max() < 1e-5
    exact = flash_attn_func(q[:, :, :1] * 0, k[:, :1, :1], v[:, :1, :1])
    assert exact.equal(v[:, :1, :1].expand_as(exact))


def test_infinity_and_nan_reach_what_they_do_in_torch():
    q, k, v = f32(1, 40, 70, 1, 1, 64, seed=5)
    q[0, 3] = math.nan
    v[0, 60, 0, 2] = -math.inf
    assert_contract(q, k, v)


def test_a_row_without_keys_is_zero():
    q, k, v = f32(1, 70, 30, 2, 2, 64, seed=6)
    out, lse = assert_contract(q, k, v, causal=True)
    assert (out[:, :40] == 0).all()
    assert (lse[:, :, :40] == -math.inf).all()


@pytest.mark.parametrize("scale", [0.0, 1e-38, -1e-38, 30.0, -30.0])
def test_every_scale(scale):
    q, k, v = f32(1, 40, 70, 2, 2, 64, seed=7)
    assert_contract(q, k, v, softmax_scale=scale)


def test_runs_repeat_bit_by_bit():
    q, k, v = f32(1, 150, 150, 2, 1, 128, seed=8)
    assert flash_attn_func(q, k, v).equal(flash_attn_func(q, k, v))


def test_the_kernels_of_a_call_are_of_its_dtype():
    q = randn(1, 4, 2, 64, seed=9).float().to(DEVICE)
    assert flash_attn_func(q, q, q).dtype == torch.float32


# Heads in turns where rows of k lie 4 KiB apart: 1024 numbers, not 2048.
def test_heads_take_turns():
    q = randn(1, 2700, 4, 64, seed=10).float()
    k, v = (randn(1, 40, 16, 64, seed=s).float()[:, :, :4] for s in (11, 12))
    assert k.stride(1) * k.element_size() == 4096
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v)
    assert_attention(q.cpu(), k.cpu(), v.cpu(), out.cpu(), lse.cpu())
