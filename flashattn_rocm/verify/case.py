"""Random inputs of one cell of the support matrix, and calls compared with the definition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.interface import flash_attn_func
from flashattn_rocm.verify.definition import attention_by_definition, gradients_by_definition
from flashattn_rocm.verify.judge import Compared

__all__ = ["SEQLEN_K", "SEQLEN_Q", "Case"]

SEQLEN_Q, SEQLEN_K = 50, 70
_BATCH, _HEADS = 2, 2

Attention = Callable[..., Any]


@dataclass
class Case:
    """A dtype, a head dim and a device; its random numbers follow from these.

    Attributes:
        dtype: of all inputs.
        head_dim: columns of q and k.
        device: "cpu" for the simulated card, "cuda" for a card.
    """

    dtype: torch.dtype
    head_dim: int
    device: str
    _generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def randn(self, *shape: int) -> Tensor:
        """Standard normal numbers of the case's dtype on its device."""
        return torch.randn(shape, generator=self._generator).to(self.dtype).to(self.device)

    def qkv(
        self,
        seqlen_q: int = SEQLEN_Q,
        seqlen_k: int = SEQLEN_K,
        heads: int = _HEADS,
        heads_kv: int = _HEADS,
        head_dim_v: int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, seqlen, heads, head_dim) of each."""
        head_dim_v = head_dim_v or self.head_dim
        return (
            self.randn(_BATCH, seqlen_q, heads, self.head_dim),
            self.randn(_BATCH, seqlen_k, heads_kv, self.head_dim),
            self.randn(_BATCH, seqlen_k, heads_kv, head_dim_v),
        )

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> list[Compared]:
        """``flash_attn_func`` with these options, out and log-sum-exp."""
        out, lse, _ = flash_attn_func(q, k, v, return_attn_probs=True, **options)
        return self.compare(out, lse, q, k, v, **options)

    def compare(
        self, out: Tensor, lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, **options: Any
    ) -> list[Compared]:
        """Results of any function beside the definition with these options."""
        want, want_lse = attention_by_definition(q, k, v, **options)
        by_torch, by_torch_lse = attention_by_definition(q, k, v, precision=self.dtype, **options)
        compared = [Compared("out", out, want, by_torch)]
        return compared if lse is None else [*compared, Compared("lse", lse, want_lse, by_torch_lse)]

    def gradients(self, inputs: Sequence[Tensor], dropout_p: float = 0.0, **options: Any) -> list[Compared]:
        """Gradients of q, k and v through ``flash_attn_func`` with these options."""
        q, k, v = leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out, _, dropped = flash_attn_func(q, k, v, dropout_p, return_attn_probs=True, **options)
        if dropout_p:  # S_dmask says by its signs what was dropped
            options |= {"keep": ~torch.signbit(dropped), "dropout_p": dropout_p}
        dout = torch.randn(out.shape, generator=self._generator).to(out.dtype).to(out.device)
        got = torch.autograd.grad(out, leaves, dout)
        want = gradients_by_definition(inputs, dout, **options)
        by_torch = gradients_by_definition(inputs, dout, precision=self.dtype, **options)
        return [Compared(*each) for each in zip(("dq", "dk", "dv"), got, want, by_torch, strict=True)]
