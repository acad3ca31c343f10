"""The float64 reference, where the right answer is known without it."""

import math

import pytest
import torch

from flashattn_rocm.accuracy import measure_accuracy, torch_math
from flashattn_rocm.reference import attention_reference, visible_keys
from tests.kit.cases import make_qkv


def test_visible_keys_at_the_bottom_right():
    assert visible_keys(2, 4, True).tolist() == [[True, True, True, False], [True] * 4]
    assert visible_keys(3, 1, True).tolist() == [[False], [False], [True]]
    assert visible_keys(2, 2, False).all()
    assert visible_keys(2, 0, True).shape == (2, 0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads_kv", [1, 2, 6])
def test_agrees_with_torch_in_float64(causal, heads_kv):
    q, k, v = (tensor.double().cpu() for tensor in make_qkv(2, 12, 12, 6, heads_kv))
    out, lse = attention_reference(q, k, v, 0.3, causal)
    heads_first = [t.transpose(1, 2) for t in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(
        *heads_first, is_causal=causal, scale=0.3, enable_gqa=True
    ).transpose(1, 2)
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(torch_math(q, k, v, 0.3, causal), want)
    assert lse.shape == (2, 6, 12)


def test_log_sum_exp():
    q = torch.ones(1, 1, 1, 2)
    k = torch.tensor([150.0, 150.0 - math.log(3) / 2])[None, :, None, None].expand(1, 2, 1, 2)
    _, lse = attention_reference(q, k, k, softmax_scale=1.0)
    assert lse.item() == pytest.approx(300 + math.log(1 + 1 / 3))


def test_rows_without_keys():
    q, k, v = (tensor.cpu() for tensor in make_qkv(1, 5, 2, 1))
    out, lse = attention_reference(q, k, v, causal=True)
    assert (out[:, :3] == 0).all()
    assert (lse[..., :3] == -math.inf).all()
    out, lse = attention_reference(q, k[:, :0], v[:, :0])
    assert (out == 0).all()
    assert (lse == -math.inf).all()


def test_masked_values_reach_nothing():
    q, k, v = (tensor.cpu() for tensor in make_qkv(1, 4, 4, 1, head_dim=32))
    v[:, 3, :, :3] = torch.tensor([math.nan, math.inf, -math.inf]).half()
    out, _ = attention_reference(q, k, v, causal=True)
    assert out[:, :3].isfinite().all()
    assert out[0, 3, 0, 0].isnan()
    assert out[0, 3, 0, 1:3].tolist() == [math.inf, -math.inf]


def test_contract_rejects_wrong_results():
    q, k, v = (tensor.cpu() for tensor in make_qkv(1, 40, 40, 1))
    want, lse = attention_reference(q, k, v)
    assert measure_accuracy(q, k, v, want.half(), lse.float()).passed
    off_by_one_row = want.roll(1, 1).half()
    assert not measure_accuracy(q, k, v, off_by_one_row, lse.float()).passed
    assert not measure_accuracy(q, k, v, want.half(), lse.float() + 2e-3).passed
    with_nan = want.half().clone()
    with_nan[0, 0, 0, 0] = math.nan
    assert measure_accuracy(q, k, v, with_nan, lse.float()).violations()[0].startswith("inf or NaN")
