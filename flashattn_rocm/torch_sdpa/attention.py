"""scaled_dot_product_attention's arguments, brought to the op's layout without copies."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.arguments import check_dropout, dropout_keywords, last_dim_contiguous

__all__ = ["attend"]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Computes what torch.nn.functional.scaled_dot_product_attention defines.

    Args:
        query: (..., heads, seqlen_q, head_dim), 2 dimensions or more.
        key: (..., heads, seqlen_k, head_dim); all but the last two dimensions broadcast.
        value: (..., heads, seqlen_k, head_dim_v).
        attn_mask: broadcasts to (..., heads, seqlen_q, seqlen_k): bool, False hides a key, or added to the
            scores (dtype of query, or float32).
        dropout_p: share of the probabilities that are dropped, in [0, 1).
        is_causal: query i sees keys 0 to i (aligned at the top left); not with attn_mask.
        scale: factor on the scores; None means 1 / sqrt(head_dim).
        enable_gqa: query head h reads key/value head ``h // (heads_q // heads_kv)``.

    Returns:
        (..., heads, seqlen_q, head_dim_v).

    Raises:
        NotImplementedError, TypeError, ValueError: with the reason, for what is not served.
    """
    check_dropout(dropout_p)
    if is_causal and attn_mask is not None:
        raise ValueError("attn_mask is not served together with is_causal")
    out_rank = max(query.dim(), key.dim(), value.dim())
    rank = max(out_rank, 4)
    q, k, v = _broadcast(enable_gqa, *(_with_rank(tensor, rank) for tensor in (query, key, value)))
    bias = None if attn_mask is None else _with_rank(attn_mask, rank)
    if bias is not None and rank > 4:
        bias = bias.expand(*q.shape[:-3], *bias.shape[-3:])
    out = _attend_batches(
        partial(_launch, dropout_p=dropout_p, scale=scale, is_causal=is_causal), q, k, v, bias
    )
    return out[(0,) * (rank - out_rank)]


def _with_rank(tensor: Tensor, rank: int) -> Tensor:
    """Adds dimensions of size 1 in front."""
    if tensor.dim() < 2 or tensor.dim() > rank:
        raise ValueError(f"2 to {rank} dimensions are served; got {tuple(tensor.shape)}")
    return tensor[(None,) * (rank - tensor.dim())]


def _broadcast(enable_gqa: bool, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gives all the same outer dimensions, and heads that the op takes, by strides of 0."""
    try:
        outer = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in (q, k, v)))
        heads_q, heads_k, heads_v = (tensor.shape[-3] for tensor in (q, k, v))
        # One head for all queries is a group of the op; other heads in groups must be asked for.
        if not enable_gqa and (heads_k > 1 or heads_v > 1):
            (heads_q,) = torch.broadcast_shapes((heads_q,), (heads_k,), (heads_v,))
            heads_k = heads_v = heads_q
    except RuntimeError as error:
        raise ValueError(
            f"shapes do not broadcast: {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        ) from error
    return (
        q.expand(*outer, heads_q, *q.shape[-2:]),
        k.expand(*outer, heads_k, *k.shape[-2:]),
        v.expand(*outer, heads_v, *v.shape[-2:]),
    )


def _attend_batches(launch: Callable[..., Tensor], *tensors: Tensor | None) -> Tensor:
    """One launch if the outer dimensions are one batch by their strides, else one for each outermost index.

    Args:
        launch: takes 4-D tensors.
        tensors: q, k, v and the bias or None, all with the same outer dimensions.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    if given[0].dim() == 4:
        return launch(*tensors)
    if all(_outer_two_are_one(tensor) for tensor in given):
        merged = (None if tensor is None else tensor.flatten(0, 1) for tensor in tensors)
        return _attend_batches(launch, *merged).unflatten(0, given[0].shape[:2])
    rows = range(given[0].shape[0])
    parts = ((None if tensor is None else tensor[row] for tensor in tensors) for row in rows)
    return torch.stack([_attend_batches(launch, *part) for part in parts])


def _launch(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    *,
    dropout_p: float,
    scale: float | None,
    is_causal: bool,
) -> Tensor:
    keywords: dict[str, Any] = dropout_keywords(dropout_p, q.device)
    if bias is not None:
        keywords["attn_bias"] = bias
    if is_causal and q.shape[2] != k.shape[2]:
        keywords["top_left"] = True
    by_rows = (last_dim_contiguous(tensor.transpose(1, 2)) for tensor in (q, k, v))
    return torch.ops.flashattn_rocm.fwd(*by_rows, scale, is_causal, **keywords)[0].transpose(1, 2)


def _outer_two_are_one(tensor: Tensor) -> bool:
    """Whether dimensions 0 and 1 can be flattened without a copy."""
    return (
        tensor.shape[0] <= 1
        or tensor.shape[1] <= 1
        or tensor.numel() == 0
        or tensor.stride(0) == tensor.shape[1] * tensor.stride(1)
    )
