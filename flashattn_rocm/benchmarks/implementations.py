"""What is measured: our forward, and its rivals."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

from flashattn_rocm.accuracy import torch_math
from flashattn_rocm.benchmarks.device import Device
from flashattn_rocm.interface import flash_attn_func
from flashattn_rocm.profiling.work import ForwardShape

Inputs = tuple[Tensor, Tensor, Tensor]
# Launches one forward; the log-sum-exp is None where it computes none.
Forward = Callable[[], tuple[Tensor, Tensor | None]]


class Implementation(Protocol):
    """One forward of attention on fp16 tensors.

    Attributes:
        name: on the command line and in results.
    """

    name: str

    def unavailable(self, device: Device, head_dim: int) -> str | None:
        """Why it cannot run there; None if it can."""

    def variants(self, head_dim: int) -> Sequence["Implementation"]:
        """What it would autotune between; the fastest one counts."""

    def prepared(self, inputs: Inputs, causal: bool) -> AbstractContextManager[Forward]:
        """Gives a forward of these inputs, for as long as the block lasts."""

    def tile(self, kernel: str | None, head_dim: int) -> str:
        """What the figures were reached with; `kernel` is the name that the device saw."""


class Ours:
    """The package's own forward."""

    name = "flashattn_rocm"

    def unavailable(self, device: Device, head_dim: int) -> str | None:
        """Never: a head dim without a kernel is refused by the forward itself."""
        return None

    def variants(self, head_dim: int) -> Sequence[Implementation]:
        """Itself: the op chooses the kernel."""
        return [self]

    def prepared(self, inputs: Inputs, causal: bool) -> AbstractContextManager[Forward]:
        """flash_attn_func as users call it."""

        def forward() -> tuple[Tensor, Tensor | None]:
            out, lse, _ = flash_attn_func(*inputs, causal=causal, return_attn_probs=True)
            return out, lse

        return nullcontext(forward)

    def tile(self, kernel: str | None, head_dim: int) -> str:
        """The part of the kernel's name behind the dtype."""
        return re.sub(r"^flashattn_fwd_[a-z0-9]+_", "", kernel) if kernel else ""


class TorchMath:
    """torch's own math path, which holds the whole score matrix in memory."""

    name = "torch_math"

    def unavailable(self, device: Device, head_dim: int) -> str | None:
        """On the simulator: torch has no device there whose time could be compared."""
        return "torch has no device on the simulated card" if device.simulated else None

    def variants(self, head_dim: int) -> Sequence[Implementation]:
        """Itself."""
        return [self]

    def prepared(self, inputs: Inputs, causal: bool) -> AbstractContextManager[Forward]:
        """scaled_dot_product_attention, backend MATH."""
        return nullcontext(lambda: (torch_math(*inputs, causal=causal), None))

    def tile(self, kernel: str | None, head_dim: int) -> str:
        """It has none."""
        return ""


def implementations() -> dict[str, Implementation]:
    """All of them by name, ours first."""
    from flashattn_rocm.benchmarks.triton_rival import TritonRival

    found: list[Implementation] = [Ours(), TritonRival(), TorchMath()]
    return {implementation.name: implementation for implementation in found}


def make_inputs(shape: ForwardShape, device: str) -> Inputs:
    """q, k, v from a standard normal, with a fixed seed."""
    generator = torch.Generator(device).manual_seed(0)

    def tensor(seqlen: int, heads: int) -> Tensor:
        size = (shape.batch, seqlen, heads, shape.head_dim)
        return torch.randn(size, generator=generator, dtype=torch.float16, device=device)

    keys, values = (tensor(shape.seqlen_k, shape.heads_kv) for _ in range(2))
    return tensor(shape.seqlen_q, shape.heads), keys, values
