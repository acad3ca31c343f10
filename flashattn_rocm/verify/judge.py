"""Whether a result is right, by docs/numerics.md, for any tensor that torch can compute too."""

from dataclasses import dataclass

import torch
from torch import Tensor

from flashattn_rocm.accuracy import MATH_ERRORS_ALLOWED, MAX_LSE_ERROR, MIN_COSINE, rounding_error

__all__ = ["Compared", "violation"]


@dataclass(frozen=True)
class Compared:
    """A result beside what it should be.

    Attributes:
        name: such as "out" or "dq"; "lse" is judged by a bound of its own.
        got: of the kernel.
        want: in float64.
        by_torch: the same by torch's own math in the dtype of the inputs.
    """

    name: str
    got: Tensor
    want: Tensor
    by_torch: Tensor

    @property
    def max_error(self) -> float:
        """Largest absolute error, over entries that are finite in float64."""
        want = self.want.detach().double()
        return _largest(self.got.detach().cpu().double() - want, want.isfinite())

    @property
    def allowed_error(self) -> float:
        """The bound on max_error; that of "lse" is another."""
        want = self.want.detach().double()
        finite = want.isfinite()
        math_error = _largest(self.by_torch.detach().double() - want, finite)
        return MATH_ERRORS_ALLOWED * math_error + rounding_error(_largest(want, finite), self.got.dtype)


def violation(compared: Compared) -> str:
    """What is wrong, in a few words; empty if nothing is."""
    got, want = compared.got.detach().cpu().double(), compared.want.detach().double()
    if got.shape != want.shape:
        return f"{compared.name} has shape {tuple(got.shape)}, not {tuple(want.shape)}"
    finite = want.isfinite()
    if not torch.equal(got.isfinite(), finite) or not torch.equal(got[~finite], want[~finite]):
        return f"{compared.name}: inf or NaN in other places than in float64"
    error = compared.max_error
    if compared.name == "lse":
        return "" if error <= MAX_LSE_ERROR else f"lse is off by {error:.1e}"
    allowed = compared.allowed_error
    if error > allowed:
        return f"{compared.name} is off by {error:.1e}, allowed are {allowed:.1e}"
    cosine = torch.nn.functional.cosine_similarity(got[finite], want[finite], dim=0).item()
    if want[finite].any() and cosine < MIN_COSINE:
        return f"{compared.name} has cosine {cosine:.5f}"
    return ""


def _largest(values: Tensor, where: Tensor) -> float:
    chosen = values[where & values.isfinite()]
    return chosen.abs().max().item() if chosen.numel() else 0.0
