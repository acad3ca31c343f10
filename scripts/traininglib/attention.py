"""Where attention is computed, and the proof that it was."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

import flashattn_rocm

__all__ = ["AttentionCalls", "on_kernels", "on_math"]


class AttentionCalls(TorchDispatchMode):
    """Counts the calls of our ops, by name ("fwd", "bwd"), and those of torch's attention, as "math"."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Counts, and goes on."""
        namespace, _, name = func._schema.name.partition("::")
        if namespace == "flashattn_rocm":
            self.counts[name] += 1
        elif name in ("_softmax", "_safe_softmax"):  # in these models of attention alone
            self.counts["math"] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def on_kernels() -> Iterator[None]:
    """Computes scaled_dot_product_attention on the kernels, or raises."""
    with flashattn_rocm.sdpa(fallback=False):
        yield


@contextlib.contextmanager
def on_math() -> Iterator[None]:
    """Leaves it to torch's math path, the only one that it has on gfx906."""
    with sdpa_kernel(SDPBackend.MATH):
        yield
