"""Layer 2: the running statistics of the online softmax, block by block, against the exact softmax.

A kernel streams the keys in blocks of block_n. Its state after n keys is what attention over the keys [0, n)
ends with: the log-sum-exp of a row, which is its running maximum and sum in one number, and O over that sum.
So prefixes of one, two, three ... blocks are computed and compared.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from flashattn_rocm.accuracy import MAX_LSE_ERROR
from flashattn_rocm.dispatch import explain_dispatch
from flashattn_rocm.interface import flash_attn_func
from flashattn_rocm.verify.definition import attention_by_definition
from flashattn_rocm.verify.judge import Compared, violation
from flashattn_rocm.verify.outcome import Outcome

__all__ = ["verify_statistics"]

_QUERIES = 40


def verify_statistics(device: str, quick: bool) -> Iterator[Outcome]:
    """Yields an outcome a block.

    Args:
        device: "cpu" for the simulated card, "cuda" for a card.
        quick: fewer blocks.
    """
    blocks = 4 if quick else 16
    for dtype in (torch.float16, torch.bfloat16):
        for head_dim in (64, 128):
            yield from _prefixes(device, dtype, head_dim, blocks)


def _prefixes(device: str, dtype: torch.dtype, head_dim: int, blocks: int) -> Iterator[Outcome]:
    choice = explain_dispatch(head_dim=head_dim, seqlen_q=_QUERIES, heads=2, dtype=dtype)[0]
    q, k, v = (tensor.to(device) for tensor in _inputs(dtype, head_dim, blocks * choice.block_n))
    for keys in range(choice.block_n, blocks * choice.block_n + 1, choice.block_n):
        prefix = (q, k[:, :keys], v[:, :keys])
        out, lse, _ = flash_attn_func(*prefix, return_attn_probs=True)
        want, want_lse = attention_by_definition(*prefix)
        by_torch, by_torch_lse = attention_by_definition(*prefix, precision=dtype)
        compared = [Compared("lse", lse, want_lse, by_torch_lse), Compared("out", out, want, by_torch)]
        yield Outcome(
            layer="statistics",
            case=f"{str(dtype).removeprefix('torch.')} D{head_dim}, {keys} keys",
            error=_error(lse, want_lse),
            torch_error=_error(by_torch_lse, want_lse),
            allowed=MAX_LSE_ERROR,
            cosine=None,
            fault="; ".join(filter(None, map(violation, compared))),
            position=keys,
        )


def _inputs(dtype: torch.dtype, head_dim: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Keys that grow along the sequence: each block raises the maximum, which moves the state most."""
    generator = torch.Generator().manual_seed(head_dim)
    shapes = ((1, _QUERIES, 2, head_dim), (1, keys, 2, head_dim), (1, keys, 2, head_dim))
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    k = k * torch.linspace(0.5, 4.0, keys)[None, :, None, None]
    return q.to(dtype), k.to(dtype), v.to(dtype)


def _error(got: Tensor, want: Tensor) -> float:
    return (got.cpu().double() - want.double()).abs().max().item()
