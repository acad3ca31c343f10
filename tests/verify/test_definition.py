"""The definition that verify compares with, against the tests' own."""

import pytest
import torch

from flashattn_rocm.verify.definition import attention_by_definition
from tests.kit.attention import attention
from tests.kit.cases import make_qkv, randn

CASES = {
    "plain": {},
    "causal": {"causal": True},
    "scale": {"softmax_scale": 0.3},
    "softcap": {"softcap": 1.5},
    "alibi": {"alibi_slopes": torch.tensor([0.5, 0.1, 0.3, 0.2])},
    "bias": {"attn_bias": randn(2, 1, 12, 17, seed=5)},
    "mask": {"attn_bias": randn(1, 4, 12, 17, seed=6) > 0},
    "sinks": {"sinks": randn(4, seed=7)},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seqlens", [(12, 17), (17, 12)])
def test_features(options, seqlens):
    if "attn_bias" in options and seqlens != (12, 17):
        pytest.skip("the bias has a shape of its own")
    q, k, v = make_qkv(2, *seqlens, heads_q=4, heads_kv=2, head_dim=24)
    out, lse = attention_by_definition(q, k, v, **options)
    want = attention(q, k, v, **options)
    torch.testing.assert_close(out, want.out)
    torch.testing.assert_close(lse, want.lse)


def test_window():
    q, k, v = make_qkv(1, 12, 17)
    out, _ = attention_by_definition(q, k, v, window_size=(3, 2))
    torch.testing.assert_close(out, attention(q, k, v, window_left=3, window_right=2).out)


def test_dropped_probabilities():
    q, k, v = make_qkv(1, 3, 4, heads_q=1, head_dim=8)
    keep = torch.tensor([[True, False, True, False]]).expand(1, 1, 3, 4)
    out, _ = attention_by_definition(q, k, v, keep=keep, dropout_p=0.5)
    score = (q[0, :, 0].double() @ k[0, :, 0].double().T) * 8**-0.5
    probability = torch.softmax(score, -1) * keep[0, 0] * 2
    torch.testing.assert_close(out[0, :, 0], probability @ v[0, :, 0].double())


def test_gradients_are_finite_where_a_query_sees_no_key():
    q, k, v = (tensor.double().requires_grad_() for tensor in make_qkv(1, 9, 4))
    out, _ = attention_by_definition(q, k, v, causal=True)
    gradients = torch.autograd.grad(out.sum(), (q, k, v))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][:, :5].any()
