"""What a result must satisfy: the numerics contract of docs/numerics.md."""

from torch import Tensor

from flashattn_rocm import flash_attn_func
from flashattn_rocm.accuracy import measure_accuracy


def assert_contract(
    q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Runs the forward and checks it; returns (out, log-sum-exp)."""
    out, lse, _ = flash_attn_func(q, k, v, softmax_scale=softmax_scale, causal=causal, return_attn_probs=True)
    violations = measure_accuracy(q, k, v, out, lse, softmax_scale, causal).violations()
    assert not violations, "; ".join(violations)
    return out, lse
