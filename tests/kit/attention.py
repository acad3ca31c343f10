"""Attention from its definition, with all that the op serves."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Attention:
    """A result.

    Attributes:
        out: (batch, seqlen_q, heads, head_dim_v).
        lse: (batch, heads, seqlen_q), natural log; -inf for a row without keys.
    """

    out: Tensor
    lse: Tensor


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    *,
    window_left: int = -1,
    window_right: int = -1,
    top_left: bool = False,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    attn_bias: Tensor | None = None,
    sinks: Tensor | None = None,
    keep: Tensor | None = None,
    dropout_p: float = 0.0,
    precision: torch.dtype = torch.float64,
) -> Attention:
    """As torch.ops.flashattn_rocm.fwd for a batch of equal sequences, straight from the definition.

    Args:
        keep: (batch, heads, seqlen_q, seqlen_k), False where a probability is dropped.
        precision: of the whole computation; with that of q it is what torch's own math would give.
    """
    batch, seqlen_q, heads, head_dim = q.shape
    seqlen_k, heads_kv = k.shape[1:3]
    keys, values = (x.to(precision).repeat_interleave(heads // heads_kv, 2) for x in (k, v))
    scale = head_dim**-0.5 if softmax_scale is None else softmax_scale
    score = torch.einsum("bihd,bjhd->bhij", q.to(precision), keys) * scale
    if softcap:
        score = softcap * torch.tanh(score / softcap)
    own = torch.arange(seqlen_q)[:, None] + (0 if top_left else seqlen_k - seqlen_q)
    key = torch.arange(seqlen_k)[None]
    if alibi_slopes is not None:
        score = score - alibi_slopes.to(precision).reshape(-1, heads, 1, 1) * (own - key).abs()
    if attn_bias is not None:
        hide = attn_bias.dtype == torch.bool
        score = score.masked_fill(~attn_bias, -math.inf) if hide else score + attn_bias.to(precision)
    visible = torch.ones(seqlen_q, seqlen_k, dtype=torch.bool)
    if window_left >= 0:
        visible &= key >= own - window_left
    if causal or window_right >= 0:
        visible &= key <= own + (0 if causal else window_right)
    score = score.masked_fill(~visible, -math.inf)
    logits = score
    if sinks is not None:
        column = sinks.to(precision).reshape(1, heads, 1, 1).expand(batch, heads, seqlen_q, 1)
        logits = torch.cat([score, column], -1)
    lse = torch.logsumexp(logits, -1) if logits.shape[-1] else score.new_full(score.shape[:-1], -math.inf)
    probability = torch.exp(score - lse.masked_fill(lse == -math.inf, 0.0)[..., None])
    if keep is not None:
        probability = probability * keep / (1.0 - dropout_p)
    return Attention(torch.einsum("bhij,bjhd->bihd", probability, values), lse)
