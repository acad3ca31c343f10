"""The functions of flash-attn 2.8 for whole sequences: dense, and packed end to end ("varlen").

Names, order of arguments, defaults, shapes and semantics are those of
https://github.com/Dao-AILab/flash-attention; keyword-only arguments after them are additions. Tensors on
``cuda`` (a ROCm torch) run on the card, tensors on ``cpu`` on the simulated card, by the same kernels.

What all six functions share:

* dtype float16, bfloat16 or (beyond flash-attn) float32, the same for all of q, k, v; any strides (a last
  dimension that is not contiguous is copied first, as upstream does); head_dim 1 to 512, padded inside the
  kernel; v may have another.
* Fewer heads in k and v than in q give grouped-query attention: query head h reads key/value head
  ``h // (num_heads // num_heads_k)``.
* Query i sees key j iff ``-left <= j - (i + seqlen_k - seqlen_q) <= right`` (aligned at the bottom right),
  where ``window_size = (left, right)``, negative means unbounded, and causal sets right to 0.
* A score is ``softmax_scale * q.k``; then, if softcap is not 0, ``softcap * tanh(score / softcap)``; then
  ``alibi_slope * |j - (i + seqlen_k - seqlen_q)|`` is subtracted and attn_bias added.
* A query that sees no key has out 0 and softmax_lse -inf. Upstream says +inf there;
  :func:`flashattn_rocm.merge_states` takes either.
* With dropout_p above 0 that share of the probabilities, in steps of 2^-16, is set to 0, and the others are
  divided by ``1 - dropout_p``. Which ones follows from torch's default generator of the device
  (``torch.manual_seed``); gradients are of the same, also where a checkpoint computes them again. softmax_lse
  does not change.
* Every result is bitwise repeatable, gradients too, so ``deterministic`` is accepted and changes nothing.
* Gradients of q, k, v, attn_bias and sinks come with autograd, from what the forward saved (out and
  softmax_lse, O(N) memory; that of attn_bias is summed in float32 for all queries and keys, in the bias's own
  batch items and heads). alibi_slopes that require grad are refused; softmax_lse has no gradient. A second
  derivative raises.
* With return_attn_probs the result is (out, softmax_lse, S_dmask): softmax_lse is the log-sum-exp of the
  scores (natural logarithm, float32). S_dmask is an empty tensor if nothing is dropped, as upstream's; else
  (batch, num_heads, seqlen_q, seqlen_k), of packed sequences the longest ones, dtype of q: each row's
  probabilities, divided by their largest, negative where they are dropped. It has no gradient.

Errors:

* TypeError: a dtype that is not served, unequal dtypes, or a malformed window_size.
* ValueError: wrong shapes, head counts, devices, or a number outside its range.
* NotImplementedError: dropout_p above 0 together with block_table.
* RuntimeError: no device, no kernels for it, or a failed launch.
"""

from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

import torch
from torch import Tensor

from flashattn_rocm.arguments import (
    dropout_keywords,
    last_dim_contiguous,
    op_keywords,
    scale_or_none,
)
from flashattn_rocm.attn_probs import s_dmask
from flashattn_rocm.backward import attention_of_packed
from flashattn_rocm.kvcache import attend_paged

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
]

Result: TypeAlias = Tensor | tuple[Tensor, Tensor, Tensor]


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    attn_bias: Tensor | None = None,
    sinks: Tensor | None = None,
) -> Result:
    """Computes ``softmax(softmax_scale * q @ k^T) @ v`` by head, without storing the scores.

    The module's text says what all functions share, errors included.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim).
        k: (batch, seqlen_k, num_heads_k, head_dim); num_heads_k divides num_heads.
        v: (batch, seqlen_k, num_heads_k, head_dim_v).
        dropout_p: share of the probabilities that are dropped, in [0, 1).
        softmax_scale: factor on the scores; any finite number, also 0 or negative. None means
            1 / sqrt(head_dim).
        causal: query i sees keys up to ``i + seqlen_k - seqlen_q``.
        window_size: how many keys to the left and right of that one are seen too.
        softcap: bound on the scores; 0.0 means none.
        alibi_slopes: float32, (num_heads,) or (batch, num_heads).
        deterministic: accepted; every result is bitwise repeatable whatever it says.
        return_attn_probs: return (out, softmax_lse, S_dmask) instead of out.
        attn_bias: any shape that broadcasts to (batch, num_heads, seqlen_q, seqlen_k), with any strides, read
            where it lies: added to the scores (dtype of q, or float32), or, if bool, False hides a key.
        sinks: (num_heads,), dtype of q or float32: a score that joins the sum below the fraction of each
            query of its head, with no value.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim_v), dtype of q; softmax_lse is
        (batch, num_heads, seqlen_q).
    """
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, attn_bias=attn_bias, sinks=sinks)
    return _attend(q, k, v, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def flash_attn_kvpacked_func(
    q: Tensor,
    kv: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    attn_bias: Tensor | None = None,
    sinks: Tensor | None = None,
) -> Result:
    """:func:`flash_attn_func` of keys and values that lie in one tensor, which is not copied.

    kv is (batch, seqlen_k, 2, num_heads_k, head_dim); all else is as there.
    """
    _check_packed("kv", kv, "batch_size", "seqlen_k", "2", "num_heads_k", "head_size")
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, attn_bias=attn_bias, sinks=sinks)
    return _attend_packed(q, kv, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def flash_attn_qkvpacked_func(
    qkv: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    attn_bias: Tensor | None = None,
    sinks: Tensor | None = None,
) -> Result:
    """:func:`flash_attn_func` of queries, keys and values that lie in one tensor, which is not copied.

    qkv is (batch, seqlen, 3, num_heads, head_dim); all else is as there.
    """
    _check_packed("qkv", qkv, "batch_size", "seqlen", "3", "num_heads", "head_size")
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, attn_bias=attn_bias, sinks=sinks)
    return _attend_packed(None, qkv, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Tensor | None = None,
    *,
    seqused_k: Tensor | None = None,
    sinks: Tensor | None = None,
) -> Result:
    """:func:`flash_attn_func` of sequences of any lengths, laid end to end without padding.

    Args:
        q: (total_q, num_heads, head_dim).
        k: (total_k, num_heads_k, head_dim); num_heads_k divides num_heads.
        v: (total_k, num_heads_k, head_dim_v).
        cu_seqlens_q: (batch + 1,), int32, on the device of q: sequence b has the rows
            [cu_seqlens_q[b], cu_seqlens_q[b + 1]) of q. A sequence may be empty.
        cu_seqlens_k: likewise for k and v.
        max_seqlen_q: at least the longest sequence of q; an int or a 0-dim tensor.
        max_seqlen_k: at least the longest sequence of k.
        dropout_p: as there.
        softmax_scale: as in :func:`flash_attn_func`.
        causal: as there, by the lengths of each sequence.
        window_size: as there, likewise.
        softcap: as there.
        alibi_slopes: float32, (num_heads,) or (batch, num_heads).
        deterministic: accepted, as there.
        return_attn_probs: return (out, softmax_lse, S_dmask) instead of out.
        block_table: (batch, max_num_blocks_per_seq), int32: k and v are then a paged cache,
            (num_blocks, page_block_size, num_heads_k, head_dim), as in
            :func:`flashattn_rocm.flash_attn_with_kvcache`; their lengths are those of cu_seqlens_k, or
            seqused_k.
        seqused_k: (batch,), int32: of each sequence of k only so many keys, from its first on, count.
        sinks: as there.

    Returns:
        out (total_q, num_heads, head_dim_v), dtype of q; softmax_lse is (num_heads, total_q).
    """
    if block_table is not None:
        if dropout_p != 0.0:
            raise NotImplementedError(f"dropout_p={dropout_p} is not served together with block_table")
        lengths = cu_seqlens_k.diff() if seqused_k is None else seqused_k
        out, softmax_lse = attend_paged(
            last_dim_contiguous(q),
            k,
            v,
            cu_seqlens_q,
            lengths,
            int(max_seqlen_q),
            block_table,
            scale_or_none(softmax_scale),
            bool(causal),
            **op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, sinks=sinks),
        )
        return (out, softmax_lse, out.new_empty(0)) if return_attn_probs else out
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, seqused_k=seqused_k, sinks=sinks)
    keywords |= _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _attend(q, k, v, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def flash_attn_varlen_kvpacked_func(
    q: Tensor,
    kv: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    seqused_k: Tensor | None = None,
    sinks: Tensor | None = None,
) -> Result:
    """:func:`flash_attn_varlen_func` of keys and values that lie in one tensor, which is not copied.

    kv is (total_k, 2, num_heads_k, head_dim); all else is as there.
    """
    _check_packed("kv", kv, "total_k", "2", "num_heads_k", "head_size")
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, seqused_k=seqused_k, sinks=sinks)
    keywords |= _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _attend_packed(q, kv, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor,
    cu_seqlens: Tensor,
    max_seqlen: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    sinks: Tensor | None = None,
) -> Result:
    """:func:`flash_attn_varlen_func` of queries, keys and values that lie in one tensor, which is not copied.

    qkv is (total, 3, num_heads, head_dim); cu_seqlens and max_seqlen are those of queries and keys alike; all
    else is as there.
    """
    _check_packed("qkv", qkv, "total", "3", "num_heads", "head_size")
    keywords = op_keywords(window_size, softcap, alibi_slopes=alibi_slopes, sinks=sinks)
    keywords |= _sequences(cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    return _attend_packed(None, qkv, dropout_p, softmax_scale, causal, keywords, return_attn_probs)


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float,
    softmax_scale: SupportsFloat | None,
    causal: bool,
    keywords: dict[str, Any],
    return_attn_probs: bool,
) -> Result:
    q, k, v = last_dim_contiguous(q), last_dim_contiguous(k), last_dim_contiguous(v)
    scale, causal = scale_or_none(softmax_scale), bool(causal)
    keywords |= dropout_keywords(dropout_p, q.device)
    out, softmax_lse = torch.ops.flashattn_rocm.fwd(q, k, v, scale, causal, **keywords)
    if not return_attn_probs:
        return out
    return out, softmax_lse, s_dmask(q, k, softmax_lse, scale, causal, **keywords)


def _attend_packed(
    q: Tensor | None,
    packed: Tensor,
    dropout_p: float,
    softmax_scale: SupportsFloat | None,
    causal: bool,
    keywords: dict[str, Any],
    return_attn_probs: bool,
) -> Result:
    q, packed = None if q is None else last_dim_contiguous(q), last_dim_contiguous(packed)
    scale, causal = scale_or_none(softmax_scale), bool(causal)
    keywords |= dropout_keywords(dropout_p, packed.device)
    out, softmax_lse = attention_of_packed(q, packed, scale, causal, keywords)
    if not return_attn_probs:
        return out
    queries, keys = (packed.unbind(-3) if q is None else (q, *packed.unbind(-3)))[:2]
    return out, softmax_lse, s_dmask(queries, keys, softmax_lse, scale, causal, **keywords)


def _sequences(
    cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: SupportsIndex, max_seqlen_k: SupportsIndex
) -> dict[str, Any]:
    return {
        "cu_seqlens_q": cu_seqlens_q,
        "cu_seqlens_k": cu_seqlens_k,
        "max_seqlen_q": int(max_seqlen_q),
        "max_seqlen_k": int(max_seqlen_k),
    }


def _check_packed(name: str, packed: Tensor, *shape: str) -> None:
    """Refuses a tensor that does not hold its parts side by side in dimension -3.

    Args:
        name: of the argument: one letter for each tensor in it.
        packed: the argument.
        shape: what each dimension is called in an error.
    """
    if packed.dim() != len(shape) or packed.shape[-3] != len(name):
        raise ValueError(f"{name} must have shape ({', '.join(shape)}); got {tuple(packed.shape)}")
