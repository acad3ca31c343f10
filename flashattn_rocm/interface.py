"""``flash_attn_func`` with the arguments and meaning of flash-attn 2.8."""

from collections.abc import Sequence
from typing import SupportsFloat

import torch
from torch import Tensor

__all__ = ["flash_attn_func"]


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[int | Tensor] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Computes ``softmax(softmax_scale * q @ k^T) @ v`` by head, without storing the scores.

    Signature and semantics are those of ``flash_attn.flash_attn_func`` 2.8
    (https://github.com/Dao-AILab/flash-attention). Tensors on ``cuda`` (a ROCm torch) run on the card,
    tensors on ``cpu`` on the simulated card; both run the same kernels.

    Fewer heads in k and v than in q give grouped-query attention: query head h reads key/value head
    ``h // (num_heads // num_heads_k)``.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim), float16; head_dim at most 128 (32, 64 and 128 have
            tiles of their own, others are padded inside the kernel). Any strides; a last
            dimension that is not contiguous is copied first, as upstream does.
        k: (batch, seqlen_k, num_heads_k, head_dim), float16, otherwise as q. num_heads_k divides num_heads.
        v: as k.
        dropout_p: only 0.0 so far.
        softmax_scale: factor on the scores before the softmax; any finite number, also 0 or negative.
            None means 1 / sqrt(head_dim).
        causal: key j is visible to query i iff ``j <= i + seqlen_k - seqlen_q`` (bottom-right aligned).
        window_size: only (-1, -1), both sides unbounded, so far.
        softcap: only 0.0, no cap, so far.
        alibi_slopes: only None so far.
        deterministic: accepted; every result is bitwise repeatable whatever it says.
        return_attn_probs: also return the log-sum-exp, and in third place an empty tensor, which is what
            upstream returns when nothing is dropped.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim), dtype of q; or, with return_attn_probs,
        (out, softmax_lse, empty) where softmax_lse (batch, num_heads, seqlen_q) is float32, in natural
        log. A query that sees no key has out 0 and softmax_lse -inf.

    Raises:
        TypeError: for a dtype that is not served, unequal dtypes, or a malformed window_size.
        ValueError: for wrong shapes, head counts, devices, a softmax_scale that is not finite, or a tensor
            that requires grad while grad mode is on (there is no backward yet).
        NotImplementedError: for an argument of flash-attn that is not served yet; names it and its value.
        RuntimeError: when no device or no kernels for it are found, or a launch fails.
    """
    _refuse_unserved(dropout_p, window_size, softcap, alibi_slopes)
    out, softmax_lse = torch.ops.flashattn_rocm.fwd(
        _last_dim_contiguous(q),
        _last_dim_contiguous(k),
        _last_dim_contiguous(v),
        None if softmax_scale is None else float(softmax_scale),
        bool(causal),
    )
    if not return_attn_probs:
        return out
    return out, softmax_lse, out.new_empty(0)


def _last_dim_contiguous(tensor: Tensor) -> Tensor:
    # A 0-dim tensor has no last stride; the op refuses its shape.
    return tensor if tensor.dim() == 0 or tensor.stride(-1) == 1 else tensor.contiguous()


def _refuse_unserved(
    dropout_p: float,
    window_size: Sequence[int | Tensor],
    softcap: float,
    alibi_slopes: Tensor | None,
) -> None:
    if not 0.0 <= dropout_p <= 1.0:  # also catches nan
        raise ValueError(f"dropout_p must be in [0, 1]; got {dropout_p}")
    if dropout_p > 0.0:
        raise NotImplementedError(f"dropout_p={dropout_p} is not served yet; allowed is 0.0")
    left, right = _window_bounds(window_size)
    if left >= 0 or right >= 0:
        raise NotImplementedError(
            f"window_size=({left}, {right}) is not served yet; allowed is (-1, -1), unbounded on both sides"
        )
    if softcap != 0.0:
        raise NotImplementedError(f"softcap={softcap} is not served yet; allowed is 0.0")
    if alibi_slopes is not None:
        raise NotImplementedError(
            f"alibi_slopes of shape {tuple(alibi_slopes.shape)} is not served yet; allowed is None"
        )


def _window_bounds(window_size: Sequence[int | Tensor]) -> tuple[int, int]:
    """Both bounds as ints; they may be 0-dim integer tensors. Negative means unbounded."""
    if not isinstance(window_size, (tuple, list, Tensor, torch.Size)) or len(window_size) != 2:
        raise TypeError(f"window_size must be a pair (left, right) of int; got {window_size!r}")
    left, right = window_size
    try:
        return left.__index__(), right.__index__()
    except (AttributeError, TypeError) as error:
        raise TypeError(f"window_size must be a pair (left, right) of int; got {window_size!r}") from error
