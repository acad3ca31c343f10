"""What one check of a layer found."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Layer", "Outcome"]

Layer = Literal["output", "statistics", "model"]


@dataclass(frozen=True)
class Outcome:
    """One row of the report.

    Attributes:
        layer: "output": out of single calls; "statistics": the log-sum-exp of growing prefixes; "model":
            the logits of one.
        case: what was computed.
        error: largest absolute error.
        torch_error: the same of torch's own math in the same dtype; None where it has none.
        allowed: the bound on error.
        cosine: similarity with the reference; None where it says nothing.
        fault: what is wrong; empty if nothing is.
        position: where on the plot's axis: keys seen so far, or the sequence length.
    """

    layer: Layer
    case: str
    error: float
    torch_error: float | None
    allowed: float
    cosine: float | None
    fault: str
    position: int

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault
