"""Inputs of the attention tests."""

from typing import NamedTuple

import torch
from torch import Tensor

from tests.kit.device import DEVICE

HEAD_DIMS = (32, 64, 128)
SEQLENS = (1, 63, 64, 65, 127, 300, 1000)
UNEQUAL_SEQLENS = ((1, 300), (300, 1), (63, 127), (127, 63), (65, 1000), (300, 64))


class Qkv(NamedTuple):
    """q (batch, seqlen_q, heads_q, head_dim); k and v (batch, seqlen_k, heads_kv, head_dim)."""

    q: Tensor
    k: Tensor
    v: Tensor


def randn(*shape: int, seed: int, dtype: torch.dtype = torch.float16) -> Tensor:
    """Standard normal numbers that depend on shape and seed alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype).to(DEVICE)


def make_qkv(
    batch: int = 1,
    seqlen_q: int = 40,
    seqlen_k: int | None = None,
    heads_q: int = 2,
    heads_kv: int | None = None,
    head_dim: int = 64,
    seed: int = 0,
) -> Qkv:
    """Contiguous random fp16 inputs; keys as many as queries and heads alike unless given."""
    seqlen_k = seqlen_q if seqlen_k is None else seqlen_k
    heads_kv = heads_q if heads_kv is None else heads_kv
    return Qkv(
        randn(batch, seqlen_q, heads_q, head_dim, seed=3 * seed),
        randn(batch, seqlen_k, heads_kv, head_dim, seed=3 * seed + 1),
        randn(batch, seqlen_k, heads_kv, head_dim, seed=3 * seed + 2),
    )
