"""Kernels for the flash operations of aten, which torch itself calls.

``torch.distributed``'s context parallelism and ``torch.nn.attention.varlen`` go through these, and so does
:mod:`.override` for DTensors. torch has their derivatives, fake tensors and sharding rules.
"""

from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.arguments import dropout_keywords, last_dim_contiguous, op_keywords, refuse_block_table
from flashattn_rocm.backward import attention_backward

__all__ = ["KERNELS"]


def _sdpa_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Tensors are (batch, heads, seqlen, head_dim); causal is aligned at the top left."""
    _refuse_debug_mask(return_debug_mask)
    q, k, v = (last_dim_contiguous(tensor.transpose(1, 2)) for tensor in (query, key, value))
    dropout = dropout_keywords(dropout_p, query.device)
    keywords = dropout | _alignment(query, key, is_causal)
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, scale, is_causal, **keywords)
    out = _with_layout_of(query, out.transpose(1, 2))
    return (out, lse, None, None, query.shape[2], key.shape[2], *_random_state(dropout, query))


def _sdpa_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor,
    philox_offset: Tensor,
    *,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    """Tensors are (batch, heads, seqlen, head_dim)."""
    dout, q, k, v, o = (
        last_dim_contiguous(tensor.transpose(1, 2)) for tensor in (grad_out, query, key, value, out)
    )
    keywords = _alignment(query, key, is_causal) | _same_dropout(dropout_p, philox_seed, philox_offset)
    gradients = attention_backward(dout, q, k, v, o, logsumexp, scale, is_causal, **keywords)
    return tuple(
        _with_layout_of(tensor, gradient.transpose(1, 2))
        for tensor, gradient in zip((query, key, value), gradients, strict=True)
    )


def _flash_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    seqused_k: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> tuple[Any, ...]:
    """Tensors are (batch, seqlen, heads, head_dim) or packed; causal is aligned at the bottom right."""
    _refuse_debug_mask(return_debug_mask)
    refuse_block_table(block_table)
    keywords = _masking(cum_seq_q, cum_seq_k, max_q, max_k, window_size_left, window_size_right)
    keywords |= op_keywords(seqused_k=seqused_k, alibi_slopes=alibi_slopes)
    dropout = dropout_keywords(dropout_p, query.device)
    q, k, v = (last_dim_contiguous(tensor) for tensor in (query, key, value))
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, scale, is_causal, **keywords, **dropout)
    return (_with_layout_of(query, out), lse, *_random_state(dropout, query))


def _flash_forward_inplace(out: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    computed, lse, *_ = _flash_forward(*arguments, **keywords)
    out.copy_(computed)
    return lse


def _flash_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    rng_state: Tensor,
    unused: Tensor,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
) -> tuple[Tensor, ...]:
    """Tensors are (batch, seqlen, heads, head_dim) or packed."""
    keywords = _masking(cum_seq_q, cum_seq_k, max_q, max_k, window_size_left, window_size_right)
    keywords |= _same_dropout(dropout_p, rng_state, unused)
    dout, q, k, v, o = (last_dim_contiguous(tensor) for tensor in (grad_out, query, key, value, out))
    return attention_backward(dout, q, k, v, o, logsumexp, scale, is_causal, **keywords)


# What torch releases add later is registered where it exists.
KERNELS = {
    "_scaled_dot_product_flash_attention": _sdpa_forward,
    "_scaled_dot_product_flash_attention_backward": _sdpa_backward,
    "_flash_attention_forward": _flash_forward,
    "_flash_attention_forward_no_dropout_inplace": _flash_forward_inplace,
    "_flash_attention_backward": _flash_backward,
}


def _refuse_debug_mask(return_debug_mask: bool) -> None:
    if return_debug_mask:
        raise NotImplementedError("return_debug_mask is not served: the kernels form no attention weights")


def _alignment(query: Tensor, key: Tensor, is_causal: bool) -> dict[str, bool]:
    return {"top_left": True} if is_causal and query.shape[2] != key.shape[2] else {}


def _masking(
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    window_left: int | None,
    window_right: int | None,
) -> dict[str, Any]:
    window = tuple(-1 if bound is None else bound for bound in (window_left, window_right))
    keywords = op_keywords(window, cu_seqlens_q=cum_seq_q, cu_seqlens_k=cum_seq_k)
    return keywords | {"max_seqlen_q": max_q, "max_seqlen_k": max_k} if cum_seq_q is not None else keywords


def _random_state(dropout: dict[str, Any], query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """rng_state, its offset, and a mask that is empty, as torch shapes them; zeros if nothing is dropped."""
    state = dropout.get("rng_state")
    if state is None:
        state = torch.zeros(2, dtype=torch.int64, device=query.device)
    if torch.version.hip:  # seed and offset
        return state[0].clone(), state[1].clone(), query.new_empty(0)
    unused = torch.zeros((), dtype=torch.uint64, device=query.device)
    return state.view(torch.uint64), unused, query.new_empty(0)


def _same_dropout(dropout_p: float, state: Tensor, offset: Tensor) -> dict[str, Any]:
    """The op's arguments from what _random_state gave."""
    if dropout_p == 0.0:
        return {}
    rng_state = torch.stack((state, offset)) if torch.version.hip else state.view(torch.int64)
    return {"dropout_p": dropout_p, "rng_state": rng_state}


def _with_layout_of(tensor: Tensor, result: Tensor) -> Tensor:
    """The strides that torch's fake kernels promise; they differ only if the last one is not 1."""
    promised = torch.empty_like(tensor)
    return result if result.stride() == promised.stride() else promised.copy_(result)
