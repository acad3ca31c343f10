"""What a result must satisfy: the numerics contract of docs/numerics.md."""

from typing import Any

from torch import Tensor

from flashattn_rocm import flash_attn_func
from flashattn_rocm.accuracy import measure_accuracy, rounding_error
from tests.kit.attention import attention


def assert_contract(
    q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Runs the forward and checks it; returns (out, log-sum-exp)."""
    out, lse, _ = flash_attn_func(q, k, v, softmax_scale=softmax_scale, causal=causal, return_attn_probs=True)
    violations = measure_accuracy(q, k, v, out, lse, softmax_scale, causal).violations()
    assert not violations, "; ".join(violations)
    return out, lse


def assert_attention(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, **options: Any) -> None:
    """Checks a result against float64 and against what torch's own math in the dtype of q reaches.

    Args:
        q: (batch, seqlen_q, heads, head_dim); k, v accordingly.
        out: what the op gave for them; lse likewise.
        options: those of tests.kit.attention.attention.
    """
    want = attention(q, k, v, **options)
    math = attention(q, k, v, **options, precision=q.dtype)
    torch_error = (math.out.double() - want.out).abs().nan_to_num().amax() if out.numel() else 0.0
    rounding = rounding_error(want.out.abs().amax().item(), q.dtype) if out.numel() else 0.0
    assert out.dtype == q.dtype
    assert out.isfinite().all()
    error = (out.double() - want.out).abs().amax() if out.numel() else 0.0
    allowed = 2 * torch_error + rounding
    assert error <= allowed, f"max abs error {error:.3e} > {allowed:.3e}"
    assert lse.isinf().equal(want.lse.isinf())
    difference = (lse.double() - want.lse)[want.lse.isfinite()].abs()
    assert difference.numel() == 0 or difference.amax() < 1e-3
