"""``xformers.ops.memory_efficient_attention`` on these kernels, for code that is written against xformers.

    from flashattn_rocm.integrations.xformers import memory_efficient_attention

xformers itself need not be installed. If it is, its bias objects are understood: LowerTriangularMask and
LowerTriangularFromBottomRightMask, BlockDiagonalMask, BlockDiagonalCausalMask and
BlockDiagonalCausalFromBottomRightMask.
"""

from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.arguments import dropout_keywords, last_dim_contiguous

__all__ = ["memory_efficient_attention"]


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
) -> Tensor:
    """Attention with the arguments of ``xformers.ops.memory_efficient_attention``.

    Args:
        query: (batch, seqlen_q, heads, head_dim); or (batch, seqlen_q, head_dim), one head; or
            (batch, seqlen_q, groups, heads, head_dim), whose groups share keys where these are expanded.
        key: likewise, seqlen_k.
        value: likewise.
        attn_bias: None, a tensor that broadcasts to (batch, heads, seqlen_q, seqlen_k), or with 5
            dimensions (batch, groups, heads, ...), and is added to the scores; or one of the objects above.
        p: share of the probabilities that are dropped, in [0, 1).
        scale: factor on the scores; None means 1 / sqrt(head_dim).
        op: must be None: there is one implementation.

    Returns:
        The shape of query, with value's head_dim.

    Raises:
        NotImplementedError: another bias object, or an op.
        TypeError, ValueError: for dtypes, shapes and devices.
    """
    if op is not None:
        raise NotImplementedError(f"op={op!r} is not served; allowed is None")
    q, k, v = _with_heads(query, key, value)
    keywords = _bias_keywords(attn_bias, q.shape[1], k.shape[1]) | dropout_keywords(p, query.device)
    causal = keywords.pop("causal", False)
    if "cu_seqlens_q" in keywords:
        q, k, v = q[0], k[0], v[0]
    if isinstance(attn_bias, Tensor) and attn_bias.dim() == 5:
        keywords["attn_bias"] = attn_bias.flatten(1, 2)
    q, k, v = (last_dim_contiguous(tensor) for tensor in (q, k, v))
    out, _ = torch.ops.flashattn_rocm.fwd(q, k, v, scale, causal, **keywords)
    return out.reshape(*query.shape[:-1], value.shape[-1])


def _with_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(batch, seqlen, heads, head_dim) of each."""
    if query.dim() == 3:
        return query.unsqueeze(2), key.unsqueeze(2), value.unsqueeze(2)
    if query.dim() == 5:
        return query.flatten(2, 3), _one_of_each_group(key), _one_of_each_group(value)
    return query, key, value


def _one_of_each_group(tensor: Tensor) -> Tensor:
    """(batch, seqlen, groups, head_dim) if the heads of a group are one, expanded; else all heads, flat."""
    shared = tensor.dim() == 5 and tensor.stride(3) == 0
    return tensor[:, :, :, 0] if shared else tensor.flatten(2, 3)


def _bias_keywords(attn_bias: Any, seqlen_q: int, seqlen_k: int) -> dict[str, Any]:
    """The op's arguments for one of xformers' biases; "causal" among them."""
    kind = type(attn_bias).__name__
    if attn_bias is None:
        return {}
    if isinstance(attn_bias, Tensor):
        return {"attn_bias": attn_bias}
    if kind in ("LowerTriangularMask", "LowerTriangularFromBottomRightMask"):
        top_left = kind == "LowerTriangularMask" and seqlen_q != seqlen_k
        return {"causal": True, "top_left": True} if top_left else {"causal": True}
    blocks: dict[str, dict[str, Any]] = {
        "BlockDiagonalMask": {},
        "BlockDiagonalCausalMask": {"causal": True, "top_left": True},
        "BlockDiagonalCausalFromBottomRightMask": {"causal": True},
    }
    if kind not in blocks:
        raise NotImplementedError(
            f"attn_bias of type {kind} is not served; materialize it to a tensor of the scores' shape"
        )
    queries, keys = attn_bias.q_seqinfo, attn_bias.k_seqinfo
    return {
        "cu_seqlens_q": queries.seqstart,
        "cu_seqlens_k": keys.seqstart,
        "max_seqlen_q": queries.max_seqlen,
        "max_seqlen_k": keys.max_seqlen,
        **blocks[kind],
    }
