"""Rotary position embedding in plain torch, with the names of ``flash_attn.layers.rotary`` 2.8.

Products and sums are in float32; results have the dtype of the input. Differentiable, on any device.
"""

import torch
from torch import Tensor

__all__ = ["apply_rotary", "apply_rotary_emb", "apply_rotary_emb_kv_", "apply_rotary_emb_qkv_"]


def apply_rotary(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    seqlen_offsets: int | Tensor = 0,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
    interleaved: bool = False,
    inplace: bool = False,
    conjugate: bool = False,
) -> Tensor:
    """Rotates the first rotary_dim channels of each row by the angles of its position.

    Args:
        x: (batch, seqlen, num_heads, head_dim), or (total, num_heads, head_dim) with cu_seqlens.
        cos: (positions, rotary_dim / 2) with rotary_dim <= head_dim.
        sin: as cos.
        seqlen_offsets: position of the first row of each sequence: a number, or (batch,) integers.
        cu_seqlens: (batch + 1,), int32: where each sequence of a packed x begins and the last one ends. Rows
            after that stay as they are.
        max_seqlen: the longest of the packed sequences; wanted with cu_seqlens, as upstream wants it.
        interleaved: the pairs are channels (0, 1), (2, 3), ...; otherwise (i, i + rotary_dim / 2).
        inplace: write into x and return it.
        conjugate: rotate backwards.

    Returns:
        Shape and dtype of x.

    Raises:
        ValueError: shapes that do not go together, or fewer positions than x needs.
    """
    if cos.shape != sin.shape or cos.dim() != 2:
        raise ValueError(
            "cos and sin must both have shape (positions, rotary_dim / 2); got "
            f"{tuple(cos.shape)} and {tuple(sin.shape)}"
        )
    rotary_dim = 2 * cos.shape[1]
    if x.dim() != (4 if cu_seqlens is None else 3) or rotary_dim > x.shape[-1]:
        layout = "(batch, seqlen, num_heads" if cu_seqlens is None else "(total, num_heads"
        raise ValueError(f"x must have shape {layout}, head_dim >= {rotary_dim}); got {tuple(x.shape)}")
    if cu_seqlens is not None and max_seqlen is None:
        raise ValueError("max_seqlen must be given with cu_seqlens")
    seqlen = x.shape[1] if cu_seqlens is None else int(max_seqlen or 0)
    first = seqlen_offsets if isinstance(seqlen_offsets, int) else 0
    if first + seqlen > cos.shape[0]:
        raise ValueError(f"cos has {cos.shape[0]} positions; {first + seqlen} are needed")
    positions = _positions(x, seqlen_offsets, cu_seqlens, cos.shape[0])
    # A head reads the angles of its row: (..., seqlen, 1, rotary_dim / 2).
    c, s = cos.float()[positions].unsqueeze(-2), sin.float()[positions].unsqueeze(-2)
    if cu_seqlens is not None:
        outside = (torch.arange(x.shape[0], device=x.device) >= cu_seqlens[-1])[:, None, None]
        c, s = c.masked_fill(outside, 1.0), s.masked_fill(outside, 0.0)
    rotated = _rotate(x[..., :rotary_dim].float(), c, -s if conjugate else s, interleaved).to(x.dtype)
    if inplace:
        x[..., :rotary_dim] = rotated
        return x
    return torch.cat([rotated, x[..., rotary_dim:]], -1)


def apply_rotary_emb(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: int | Tensor = 0,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """:func:`apply_rotary` with upstream's other order of arguments."""
    return apply_rotary(x, cos, sin, seqlen_offsets, cu_seqlens, max_seqlen, interleaved, inplace)


def apply_rotary_emb_qkv_(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    cos_k: Tensor | None = None,
    sin_k: Tensor | None = None,
    interleaved: bool = False,
    seqlen_offsets: int | Tensor = 0,
    num_heads_q: int | None = None,
) -> Tensor:
    """Rotates the queries and keys of a packed tensor in place.

    Args:
        qkv: (batch, seqlen, 3, num_heads, head_dim), or (batch, seqlen, num_heads_q + 2 * num_heads_k,
            head_dim) with num_heads_q.
        cos: of the queries; also of the keys unless cos_k is given.
        sin: likewise.
        cos_k: of the keys.
        sin_k: of the keys.
        interleaved: see :func:`apply_rotary`.
        seqlen_offsets: see :func:`apply_rotary`.
        num_heads_q: how many of the heads of a 4-D qkv are queries.

    Returns:
        qkv.

    Raises:
        ValueError: qkv has another shape.
    """
    if qkv.dim() == 5 and qkv.shape[2] == 3:
        q, k, _ = qkv.unbind(2)
    elif qkv.dim() == 4 and num_heads_q is not None and (qkv.shape[2] - num_heads_q) % 2 == 0:
        q, k, _ = qkv.split([num_heads_q, *[(qkv.shape[2] - num_heads_q) // 2] * 2], 2)
    else:
        raise ValueError(
            "qkv must have shape (batch, seqlen, 3, num_heads, head_dim), or with num_heads_q "
            f"(batch, seqlen, num_heads_q + 2 * num_heads_k, head_dim); got {tuple(qkv.shape)}"
        )
    apply_rotary(q, cos, sin, seqlen_offsets, interleaved=interleaved, inplace=True)
    cos_k, sin_k = cos if cos_k is None else cos_k, sin if sin_k is None else sin_k
    apply_rotary(k, cos_k, sin_k, seqlen_offsets, interleaved=interleaved, inplace=True)
    return qkv


def apply_rotary_emb_kv_(
    kv: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, seqlen_offsets: int | Tensor = 0
) -> Tensor:
    """Rotates the keys of kv (batch, seqlen, 2, num_heads, head_dim) in place, and returns kv."""
    apply_rotary(kv[:, :, 0], cos, sin, seqlen_offsets, interleaved=interleaved, inplace=True)
    return kv


def _positions(x: Tensor, offsets: int | Tensor, cu_seqlens: Tensor | None, count: int) -> Tensor:
    """Row numbers in cos and sin: (seqlen,), (batch, seqlen) or (total,)."""
    if cu_seqlens is None:
        rows = torch.arange(x.shape[1], device=x.device)
        return rows + (offsets if isinstance(offsets, int) else offsets.long()[:, None])
    rows = torch.arange(x.shape[0], device=x.device)
    sequence = torch.bucketize(rows, cu_seqlens[1:], right=True).clamp(max=cu_seqlens.shape[0] - 2)
    first = offsets if isinstance(offsets, int) else offsets.long()[sequence]
    # Rows after the last sequence are not rotated, but their index must exist.
    return (rows - cu_seqlens[sequence] + first).clamp(max=count - 1)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    pair = (a * cos - b * sin, a * sin + b * cos)
    return torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
