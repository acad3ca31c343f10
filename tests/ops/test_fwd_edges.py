"""Empty sizes, rows without keys, and values at the ends of the number range."""

import math

import pytest
import torch

from flashattn_rocm import flash_attn_func
from flashattn_rocm.reference import attention_reference
from tests.kit.cases import HEAD_DIMS, make_qkv, randn
from tests.kit.device import DEVICE, expect_usable
from tests.kit.tolerance import assert_contract


@pytest.mark.parametrize("shape", [(0, 5, 5, 2, 2), (2, 0, 5, 2, 2), (2, 0, 0, 2, 2), (2, 5, 5, 0, 0)])
def test_no_rows(shape):
    batch, seqlen_q, seqlen_k, heads_q, heads_kv = shape
    q, k, v = make_qkv(batch, seqlen_q, seqlen_k, heads_q, heads_kv)
    out, lse, probs = flash_attn_func(q, k, v, return_attn_probs=True)
    assert out.shape == q.shape
    assert out.dtype == torch.float16
    assert lse.shape == (batch, heads_q, seqlen_q)
    assert lse.dtype == torch.float32
    assert probs.shape == (0,)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_no_keys(causal):
    q, k, v = make_qkv(2, 70, 0, 4, 2)
    out, lse, _ = flash_attn_func(q, k, v, causal=causal, return_attn_probs=True)
    assert (out == 0).all()
    assert (lse == -math.inf).all()


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_rows_that_causal_hides_whole(head_dim):
    qkv = make_qkv(1, 160, 96, 2, head_dim=head_dim, seed=50)
    out, lse = assert_contract(*qkv, causal=True)
    assert (out[:, :64] == 0).all()
    assert (lse[..., :64] == -math.inf).all()
    assert lse[..., 64:].isfinite().all()


def test_causal_is_aligned_at_the_bottom_right():
    v = torch.eye(5, 32, dtype=torch.float16, device=DEVICE)[None, :, None]
    q = torch.zeros(1, 2, 1, 32, dtype=torch.float16, device=DEVICE)
    out = flash_attn_func(q, v, v, causal=True)[0, :, 0, :5].float()
    want = torch.tensor([[1 / 4] * 4 + [0.0], [1 / 5] * 5], device=DEVICE)
    torch.testing.assert_close(out, want, atol=1e-4, rtol=0)


@pytest.mark.parametrize("magnitude", [1e2, 1e4, 6e4])
def test_large_logits(magnitude):
    q, k, v = make_qkv(1, 40, 70, 1, head_dim=128, seed=51)
    q = (q.float() * magnitude).clamp(-65504, 65504).half()
    out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    want, want_lse = attention_reference(q, k, v, causal=True)
    assert out.isfinite().all()
    # Rows where the two largest scores are closer than an fp32 score can tell are left out.
    scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / 128**0.5
    top = scores.masked_fill(~torch.ones(40, 70).tril(30).bool(), -math.inf).topk(2).values
    clear = (top[..., 0] - top[..., 1] > 1e-4 * magnitude + 30)[0, 0]
    assert clear.sum() > 5
    torch.testing.assert_close(out[0, clear, 0].double().cpu(), want[0, clear, 0], atol=2e-3, rtol=1e-3)
    torch.testing.assert_close(lse.double().cpu(), want_lse, atol=1e-3, rtol=1e-6)  # fp32 sums


def test_logits_below_any_finite_stand_in_for_minus_infinity():
    q = torch.full((1, 2, 1, 128), -64.0, dtype=torch.float16, device=DEVICE)
    keys = torch.tensor([16.0, 16.25, 16.0, 16.25, 16.0], dtype=torch.float16, device=DEVICE)
    k = keys[None, :, None, None].expand(1, 5, 1, 128)
    v = randn(1, 5, 1, 128, seed=52)
    out = flash_attn_func(q, k, v, softmax_scale=1.0)
    want = v[:, [0, 2, 4]].double().mean(1, keepdim=True).expand(1, 2, 1, 128)
    torch.testing.assert_close(out.double(), want, atol=2e-3, rtol=1e-3)


def test_sum_of_values_beyond_fp16():
    q = torch.zeros(1, 1, 2, 64, dtype=torch.float16, device=DEVICE)
    v = torch.full((1, 256, 2, 64), 60000.0, dtype=torch.float16, device=DEVICE)
    out = flash_attn_func(q, randn(1, 256, 2, 64, seed=53), v)
    assert out.equal(torch.full_like(q, 60000.0))


def test_nan_in_a_query_stays_in_its_row():
    q, k, v = make_qkv(1, 20, 20, 1, head_dim=32, seed=54)
    want = flash_attn_func(q, k, v)
    q[:, 7] = math.nan
    out = flash_attn_func(q, k, v)
    assert out[:, 7].isnan().all()
    rest = torch.arange(20) != 7
    assert out[:, rest].equal(want[:, rest])


def test_nan_in_a_key_reaches_the_rows_that_see_it():
    q, k, v = make_qkv(1, 100, 100, 1, head_dim=32, seed=55)
    want = flash_attn_func(q, k, v, causal=True)
    k[:, 70] = math.nan
    out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    assert out[:, 70:].isnan().all()
    assert lse[..., 70:].isnan().all()
    assert out[:, :70].equal(want[:, :70])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_infinity_or_nan_in_a_value_stays_in_its_channel(value):
    q, k, v = make_qkv(1, 20, 20, 1, head_dim=32, seed=56)
    want = flash_attn_func(q, k, v)
    v[:, 0, :, 5] = value
    out = flash_attn_func(q, k, v)
    torch.testing.assert_close(out[..., 5], torch.full_like(out[..., 5], value), equal_nan=True)
    others = torch.arange(32) != 5
    assert out[..., others].equal(want[..., others])


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_scores_of_minus_infinity_have_no_weight(head_dim):
    q = torch.ones(1, 2, 1, head_dim, dtype=torch.float16, device=DEVICE)
    k, v = (randn(1, 71, 1, head_dim, seed=s) for s in (57, 58))
    k[:, :64] = -math.inf
    out, lse, _ = flash_attn_func(q, k, v, return_attn_probs=True)
    want, want_lse = attention_reference(q, k[:, 64:], v[:, 64:])
    torch.testing.assert_close(out.double().cpu(), want, atol=3e-3, rtol=0)
    torch.testing.assert_close(lse.double().cpu(), want_lse, atol=1e-3, rtol=0)


def test_all_scores_minus_infinity_is_an_empty_row():
    q = torch.ones(1, 3, 1, 32, dtype=torch.float16, device=DEVICE)
    k = torch.full((1, 70, 1, 32), -math.inf, dtype=torch.float16, device=DEVICE)
    out, lse, _ = flash_attn_func(q, k, randn(1, 70, 1, 32, seed=59), return_attn_probs=True)
    assert (out == 0).all()
    assert (lse == -math.inf).all()
    expect_usable()


@pytest.mark.parametrize("extreme", [65504.0, 6e-8, 0.0])
def test_extreme_values_in_v(extreme):
    q, k, _ = make_qkv(1, 33, 65, 1, head_dim=32, seed=60)
    v = torch.full_like(k, extreme)
    out = flash_attn_func(q, k, v)
    torch.testing.assert_close(out, torch.full_like(out, extreme), rtol=1e-3, atol=6e-8)
