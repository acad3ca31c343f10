"""The numerics contract (docs/numerics.md) as one measurement."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from flashattn_rocm.reference import attention_reference, visible_keys

__all__ = [
    "MATH_ERRORS_ALLOWED",
    "MAX_LSE_ERROR",
    "MIN_COSINE",
    "Accuracy",
    "measure_accuracy",
    "rounding_error",
    "torch_math",
]

MATH_ERRORS_ALLOWED = 2.0
MIN_COSINE = 0.9999
MAX_LSE_ERROR = 1e-3
FP32_ERROR = 1e-5  # of the largest output


@dataclass(frozen=True)
class Accuracy:
    """How far a forward is from float64.

    Attributes:
        non_finite_match: inf and NaN are where the reference has them, in out and in the log-sum-exp.
        max_error: largest absolute error of out, over the finite entries.
        math_error: the same, of torch's own math in the dtype of the inputs.
        rounding: what the output's dtype adds, see rounding_error.
        cosine: similarity of out and the reference as two vectors; 1 if both are zero.
        lse_error: largest absolute error of the log-sum-exp, over the finite entries.
    """

    non_finite_match: bool
    max_error: float
    math_error: float
    rounding: float
    cosine: float
    lse_error: float

    @property
    def allowed_error(self) -> float:
        """The bound on max_error."""
        return MATH_ERRORS_ALLOWED * self.math_error + self.rounding

    @property
    def passed(self) -> bool:
        """Whether every part of the contract holds."""
        return not self.violations()

    def violations(self) -> list[str]:
        """One sentence for each part of the contract that does not hold."""
        found = []
        if not self.non_finite_match:
            found.append("inf or NaN in other places than in the reference")
        if not self.max_error <= self.allowed_error:
            found.append(
                f"max abs error {self.max_error:.3e} > {self.allowed_error:.3e} = {MATH_ERRORS_ALLOWED:g} x "
                f"{self.math_error:.3e} (torch math) + {self.rounding:.3e} (rounding)"
            )
        if not self.cosine >= MIN_COSINE:
            found.append(f"cosine {self.cosine:.6f} < {MIN_COSINE}")
        if not self.lse_error <= MAX_LSE_ERROR:
            found.append(f"log-sum-exp error {self.lse_error:.3e} > {MAX_LSE_ERROR}")
        return found


def torch_math(
    q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False
) -> Tensor:
    """Attention by the math backend of torch's ``scaled_dot_product_attention``.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim).
        k: (batch, seqlen_k, num_heads_k, head_dim).
        v: as k.
        softmax_scale: factor on the scores; None means 1 / sqrt(head_dim).
        causal: bottom-right aligned, as in attention_reference.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim), dtype of q; 0 for a query without a visible key.
    """
    group = q.shape[2] // k.shape[2] if k.shape[2] else 1
    keys, values = (tensor.transpose(1, 2).repeat_interleave(group, 1) for tensor in (k, v))
    visible = visible_keys(q.shape[1], k.shape[1], causal).to(q.device)
    with sdpa_kernel(SDPBackend.MATH):
        out = scaled_dot_product_attention(
            q.transpose(1, 2), keys, values, attn_mask=visible if causal else None, scale=softmax_scale
        )
    return out.transpose(1, 2)


def rounding_error(largest: float, dtype: torch.dtype) -> float:
    """What an output may be off beside the error of the math.

    16-bit outputs are rounded from float32 sums: half a unit in the last place at the largest entry. Nothing
    is rounded in float32; there it is the bound of these kernels, 1e-5, below which the order of sums, which
    differs from torch's, decides.

    Args:
        largest: absolute entry of the reference.
        dtype: of the output.
    """
    return largest * (FP32_ERROR if dtype == torch.float32 else torch.finfo(dtype).eps / 2)


def measure_accuracy(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
) -> Accuracy:
    """Compares a forward with float64 and with torch's own math on the same input.

    Args:
        q: the inputs of the forward, as attention_reference takes them.
        k: likewise.
        v: likewise.
        out: (batch, seqlen_q, num_heads, head_dim), what the forward gave.
        softmax_lse: (batch, num_heads, seqlen_q), what it gave as log-sum-exp.
        softmax_scale: as the forward got it.
        causal: as the forward got it.

    Returns:
        The measurement; ``passed`` says whether it meets the contract.
    """
    want, want_lse = attention_reference(q, k, v, softmax_scale, causal)
    got, got_lse = out.detach().cpu().double(), softmax_lse.detach().cpu().double()
    math_out = torch_math(q, k, v, softmax_scale, causal).cpu().double()
    finite = want.isfinite()
    largest = _largest(want[finite])
    return Accuracy(
        non_finite_match=_same_non_finite(got, want) and _same_non_finite(got_lse, want_lse),
        max_error=_largest((got - want)[finite]),
        math_error=_largest((math_out - want)[finite & math_out.isfinite()]),
        rounding=rounding_error(largest, q.dtype),
        cosine=_cosine(got[finite], want[finite]),
        lse_error=_largest((got_lse - want_lse)[want_lse.isfinite()]),
    )


def _largest(values: Tensor) -> float:
    return values.abs().max().item() if values.numel() else 0.0


def _same_non_finite(got: Tensor, want: Tensor) -> bool:
    odd = ~want.isfinite()
    same_places = bool((got.isfinite() == want.isfinite()).all())
    return (
        same_places
        and torch.equal(got[odd].nan_to_num(0.0), want[odd].nan_to_num(0.0))
        and bool((got[odd].isnan() == want[odd].isnan()).all())
    )


def _cosine(got: Tensor, want: Tensor) -> float:
    lengths = got.norm() * want.norm()
    if lengths == 0:
        return 1.0 if torch.equal(got, want) else 0.0
    return ((got * want).sum() / lengths).item()
