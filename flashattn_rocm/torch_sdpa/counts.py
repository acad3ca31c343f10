"""How many calls the kernels served, and why others were left to torch."""

import re
import warnings
from dataclasses import dataclass, field

__all__ = ["SdpaCounts"]


@dataclass
class SdpaCounts:
    """Calls of scaled_dot_product_attention since the override was switched on.

    A compiled graph counts while it is traced (once for each pass), not when it runs.

    Attributes:
        served: by the kernels.
        fallbacks: by torch: how many for each reason.
    """

    served: int = 0
    fallbacks: dict[str, int] = field(default_factory=dict)

    def add_fallback(self, error: Exception) -> None:
        """Counts a call that the kernels refused, and warns of a reason that is new."""
        # What follows the colon or semicolon are shapes and values; reasons are few without them.
        reason = re.split("[:;]", str(error))[0]
        if reason not in self.fallbacks:
            message = f"scaled_dot_product_attention falls back to torch: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        self.fallbacks[reason] = self.fallbacks.get(reason, 0) + 1

    def __str__(self) -> str:
        lines = [f"served by flashattn_rocm: {self.served}"]
        lines += [f"left to torch: {count} ({reason})" for reason, count in self.fallbacks.items()]
        return "\n".join(lines)
