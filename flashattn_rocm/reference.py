"""Attention in float64 on the CPU: what the kernels are measured against."""

import math

import torch
from torch import Tensor

__all__ = ["attention_reference", "visible_keys"]


def visible_keys(seqlen_q: int, seqlen_k: int, causal: bool) -> Tensor:
    """Which keys each query may see.

    Args:
        seqlen_q: number of queries.
        seqlen_k: number of keys.
        causal: key j is visible to query i iff ``j <= i + seqlen_k - seqlen_q``; else all are.

    Returns:
        (seqlen_q, seqlen_k) bool.
    """
    allowed = torch.ones(seqlen_q, seqlen_k, dtype=torch.bool)
    return allowed.tril(seqlen_k - seqlen_q) if causal else allowed


def attention_reference(
    q: Tensor, k: Tensor, v: Tensor, softmax_scale: float | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Attention computed in float64 from the inputs as they are.

    The definition is that of flash-attn (causal mask aligned at the bottom right; query head h reads
    key/value head ``h // (num_heads // num_heads_k)``), except that a query without a visible key has
    log-sum-exp -inf. A masked key does not reach a result, whatever k and v hold there. inf and NaN
    spread by the rules of IEEE arithmetic.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim), any floating dtype and device.
        k: (batch, seqlen_k, num_heads_k, head_dim), likewise.
        v: as k.
        softmax_scale: factor on the scores; None means 1 / sqrt(head_dim).
        causal: see visible_keys.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim) and log-sum-exp (batch, num_heads, seqlen_q) in natural
        log, both float64 on the CPU. A query without a visible key has 0 and -inf.
    """
    q64, k64, v64 = (tensor.detach().cpu().double() for tensor in (q, k, v))
    group = q.shape[2] // k.shape[2] if k.shape[2] else 1
    k64, v64 = k64.repeat_interleave(group, 2), v64.repeat_interleave(group, 2)
    scale = 1.0 / math.sqrt(q.shape[3]) if softmax_scale is None else softmax_scale
    scores = torch.einsum("bihd,bjhd->bhij", q64 * scale, k64)
    scores = scores.masked_fill(~visible_keys(q.shape[1], k.shape[1], causal), -math.inf)
    lse = torch.logsumexp(scores, -1)
    # A row whose scores are all -inf has no weight anywhere; exp(-inf - 0) says so without NaN.
    weights = torch.exp(scores - lse.masked_fill(lse == -math.inf, 0.0)[..., None])
    return _weighted_values(weights, v64), lse


def _weighted_values(weights: Tensor, v: Tensor) -> Tensor:
    """Sums v over keys by weight; a weight of 0 takes nothing, not even from inf or NaN."""
    finite = torch.einsum("bhij,bjhd->bihd", weights, v.nan_to_num(0.0, 0.0, 0.0))
    if v.isfinite().all():
        return finite
    touched = (weights != 0).double()

    def reached(kind: Tensor) -> Tensor:
        return torch.einsum("bhij,bjhd->bihd", touched, kind.double()) > 0

    up, down, nan = reached(v == math.inf), reached(v == -math.inf), reached(v.isnan())
    out = finite.masked_fill(up, math.inf).masked_fill(down, -math.inf)
    return out.masked_fill(nan | (up & down) | finite.isnan(), math.nan)
