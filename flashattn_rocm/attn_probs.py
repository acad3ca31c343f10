"""The probabilities that the forward weighs values with, for tests and attention maps."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["s_dmask"]


def s_dmask(
    q: Tensor, k: Tensor, softmax_lse: Tensor, softmax_scale: float | None, causal: bool, **keywords: Any
) -> Tensor:
    """flash-attn's S_dmask of a forward with dropout.

    upstream leaves out the division by a row's sum, and gives probabilities relative to the largest score of
    their row so far; here that is the row's largest score for all its keys.

    Args:
        q: as the forward took it, and so are the other arguments.
        k: likewise.
        softmax_lse: what it gave.
        softmax_scale: as it took it.
        causal: likewise.
        keywords: the keyword arguments of ``torch.ops.flashattn_rocm.fwd``.

    Returns:
        (batch, num_heads, seqlen_q, seqlen_k), dtype of q: 0 to 1, negative where dropped; (0,) without
        dropout. It takes O(seqlen_q * seqlen_k) memory.
    """
    if "dropout_p" not in keywords:
        return q.new_empty(0)
    keywords.pop("sinks", None)  # softmax_lse knows them
    probs = torch.ops.flashattn_rocm.attn_probs(
        q.detach(), k.detach(), softmax_lse.detach(), softmax_scale, causal, **keywords
    )
    if probs.shape[-1] == 0:
        return probs
    largest = probs.abs().amax(-1, keepdim=True).float()
    return (probs / largest.where(largest > 0, 1.0)).to(probs.dtype)
