"""Layer 1: outputs of single calls against float64, and against torch's own math."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from flashattn_rocm.accuracy import measure_accuracy
from flashattn_rocm.interface import flash_attn_func
from flashattn_rocm.verify.outcome import Outcome

__all__ = ["verify_outputs"]

_LENGTHS = ((1, 300), (127, 127), (300, 65), (1000, 1000))
_QUICK_LENGTHS = ((1, 300), (127, 190))


@dataclass(frozen=True)
class _Call:
    dtype: torch.dtype
    head_dim: int
    seqlen_q: int
    seqlen_k: int
    causal: bool

    def __str__(self) -> str:
        mask = "causal" if self.causal else "no mask"
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{dtype} D{self.head_dim} {self.seqlen_q} x {self.seqlen_k} {mask}"


def _calls(quick: bool) -> Iterator[_Call]:
    for dtype in (torch.float16, torch.bfloat16):
        for head_dim in (64, 128) if quick else (32, 64, 80, 128, 256):
            for lengths in _QUICK_LENGTHS if quick else _LENGTHS:
                for causal in (False, True):
                    yield _Call(dtype, head_dim, *lengths, causal)
    if not quick:  # an error that grows with the length would show here
        for head_dim in (64, 128):
            yield _Call(torch.float16, head_dim, 64, 16384, False)


def verify_outputs(device: str, quick: bool) -> Iterator[Outcome]:
    """Yields an outcome a call.

    Args:
        device: "cpu" for the simulated card, "cuda" for a card.
        quick: fewer head dims and lengths.
    """
    generator = torch.Generator().manual_seed(0)
    for call in _calls(quick):
        shapes = [(1, n, 2, call.head_dim) for n in (call.seqlen_q, call.seqlen_k, call.seqlen_k)]
        q, k, v = (torch.randn(shape, generator=generator).to(call.dtype).to(device) for shape in shapes)
        out, lse, _ = flash_attn_func(q, k, v, causal=call.causal, return_attn_probs=True)
        accuracy = measure_accuracy(q, k, v, out, lse, causal=call.causal)
        yield Outcome(
            layer="output",
            case=str(call),
            error=accuracy.max_error,
            torch_error=accuracy.math_error,
            allowed=accuracy.allowed_error,
            cosine=accuracy.cosine,
            fault="; ".join(accuracy.violations()),
            position=call.seqlen_k,
        )
