"""Attention straight from its definition, with every feature, in any precision; differentiable."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["attention_by_definition", "gradients_by_definition"]


def attention_by_definition(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    precision: torch.dtype = torch.float64,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Sequence[int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    attn_bias: Tensor | None = None,
    sinks: Tensor | None = None,
    keep: Tensor | None = None,
    dropout_p: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """As ``flash_attn_func``, with the whole score matrix in memory, on the CPU.

    Args:
        q: (batch, seqlen_q, heads, head_dim).
        k: (batch, seqlen_k, heads_kv, head_dim).
        v: (batch, seqlen_k, heads_kv, head_dim_v).
        precision: of the whole computation; that of q gives what torch's own math would.
        softmax_scale: as there; so are all that follow but two.
        causal: as there.
        window_size: as there.
        softcap: as there.
        alibi_slopes: as there.
        attn_bias: as there.
        sinks: as there.
        keep: (batch, heads, seqlen_q, seqlen_k), bool: False where dropout removed a probability.
        dropout_p: what kept probabilities are scaled up for.

    Returns:
        out (batch, seqlen_q, heads, head_dim_v) and log-sum-exp (batch, heads, seqlen_q), both of that
        precision. A query that sees no key has 0 and -inf.
    """
    q, k, v = (tensor.cpu().to(precision) for tensor in (q, k, v))
    heads, group = q.shape[2], q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    scale = q.shape[3] ** -0.5 if softmax_scale is None else softmax_scale
    score = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if softcap:
        score = softcap * torch.tanh(score / softcap)
    own = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    key = torch.arange(k.shape[1])[None]
    if alibi_slopes is not None:
        score = score - alibi_slopes.cpu().to(precision).reshape(-1, heads, 1, 1) * (own - key).abs()
    if attn_bias is not None and attn_bias.dtype != torch.bool:
        score = score + attn_bias.cpu().to(precision)
    visible = _visible(own, key, causal, window_size)
    if attn_bias is not None and attn_bias.dtype == torch.bool:
        visible = visible & attn_bias.cpu()
    score = score.masked_fill(~visible, -math.inf)
    lse = torch.logsumexp(score, -1)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks.cpu().to(precision).reshape(1, heads, 1).expand_as(lse))
    # A row without keys has weight nowhere; the fill keeps NaN out of it and out of its gradients.
    weight = torch.exp(score.masked_fill(~visible, 0.0) - lse.masked_fill(lse == -math.inf, 0.0)[..., None])
    weight = weight.masked_fill(~visible, 0.0)
    if keep is not None:
        weight = weight * keep.cpu() / (1.0 - dropout_p)
    return torch.einsum("bhij,bjhd->bihd", weight, v), lse


def gradients_by_definition(
    inputs: Sequence[Tensor], dout: Tensor, *, precision: torch.dtype = torch.float64, **options: Any
) -> tuple[Tensor, ...]:
    """Gradients of attention_by_definition by autograd.

    Args:
        inputs: q, k and v, as there.
        dout: (batch, seqlen_q, heads, head_dim_v), gradient of out.
        precision: as there, and of the gradients.
        options: as there.

    Returns:
        dq, dk and dv, on the CPU.
    """
    leaves = [tensor.detach().cpu().to(precision).requires_grad_() for tensor in inputs]
    out, _ = attention_by_definition(*leaves, precision=precision, **options)
    return torch.autograd.grad(out, leaves, dout.cpu().to(precision))


def _visible(own: Tensor, key: Tensor, causal: bool, window_size: Sequence[int]) -> Tensor:
    """(seqlen_q, seqlen_k) bool."""
    left, right = window_size[0], 0 if causal else window_size[1]
    visible = torch.ones(own.shape[0], key.shape[1], dtype=torch.bool)
    if left >= 0:
        visible &= key >= own - left
    if right >= 0:
        visible &= key <= own + right
    return visible
