"""The entry points of upstream's compiled extension: positional, without autograd.

The order of arguments is upstream's; xformers and its test file call them so. Without dropout S_dmask is
empty and rng_state zeros.
"""

from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.arguments import dropout_keywords, op_keywords
from flashattn_rocm.attn_probs import s_dmask
from flashattn_rocm.backward import attention_backward
from flashattn_rocm.kvcache import attend_paged

__all__ = ["bwd", "fwd", "varlen_bwd", "varlen_fwd"]

Forward = tuple[Tensor, Tensor, Tensor, Tensor]  # out, softmax_lse, S_dmask, rng_state


def fwd(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor | None,
    alibi_slopes: Tensor | None,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_left: int,
    window_right: int,
    softcap: float,
    return_softmax: bool,
    generator: None,
) -> Forward:
    """Attention of whole sequences: q (batch, seqlen, num_heads, head_dim); see flash_attn_func."""
    _check(dropout_p, generator, return_softmax)
    keywords = op_keywords((window_left, window_right), softcap, alibi_slopes=alibi_slopes)
    keywords |= dropout_keywords(dropout_p, q.device)
    return _forward(q, k, v, out, softmax_scale, causal, keywords, return_softmax)


def varlen_fwd(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor | None,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    seqused_k: Tensor | None,
    leftpad_k: Tensor | None,
    block_table: Tensor | None,
    alibi_slopes: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    zero_tensors: bool,
    causal: bool,
    window_left: int,
    window_right: int,
    softcap: float,
    return_softmax: bool,
    generator: None,
    num_splits: int = 0,
) -> Forward:
    """Attention of packed sequences: q (total, num_heads, head_dim); see flash_attn_varlen_func.

    With block_table k and v are a paged cache. zero_tensors changes nothing: rows that belong to no sequence
    are always 0. num_splits is for paged caches alone: into how many parts their keys are split.
    """
    _check(dropout_p, generator, return_softmax)
    if leftpad_k is not None:
        raise NotImplementedError(
            "leftpad_k is not served; begin each sequence of cu_seqlens_k after its padding"
        )
    if block_table is not None:
        if dropout_p > 0.0:
            raise NotImplementedError(f"dropout_p={dropout_p} is not served together with block_table")
        lengths = cu_seqlens_k.diff() if seqused_k is None else seqused_k
        keywords = op_keywords((window_left, window_right), softcap, alibi_slopes=alibi_slopes)
        computed, softmax_lse = attend_paged(
            q,
            k,
            v,
            cu_seqlens_q,
            lengths,
            max_seqlen_q,
            block_table,
            softmax_scale,
            causal,
            num_splits,
            **keywords,
        )
        computed = computed if out is None else out.copy_(computed)
        return computed, softmax_lse, q.new_empty(0), torch.zeros(2, dtype=torch.int64, device=q.device)
    keywords = op_keywords(
        (window_left, window_right),
        softcap,
        alibi_slopes=alibi_slopes,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
        seqused_k=seqused_k,
    )
    keywords |= {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    keywords |= dropout_keywords(dropout_p, q.device)
    return _forward(q, k, v, out, softmax_scale, causal, keywords, return_softmax)


def bwd(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq: Tensor | None,
    dk: Tensor | None,
    dv: Tensor | None,
    alibi_slopes: Tensor | None,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_left: int,
    window_right: int,
    softcap: float,
    deterministic: bool,
    generator: None,
    rng_state: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of fwd, by the out and softmax_lse that are given; (dq, dk, dv, rowsum(dout * out))."""
    _check(dropout_p, generator)
    keywords = op_keywords((window_left, window_right), softcap, alibi_slopes=alibi_slopes)
    keywords |= _same_dropout(dropout_p, rng_state)
    return _backward(dout, q, k, v, out, softmax_lse, (dq, dk, dv), softmax_scale, causal, keywords)


def varlen_bwd(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq: Tensor | None,
    dk: Tensor | None,
    dv: Tensor | None,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    alibi_slopes: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    zero_tensors: bool,
    causal: bool,
    window_left: int,
    window_right: int,
    softcap: float,
    deterministic: bool,
    generator: None,
    rng_state: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of varlen_fwd; as bwd."""
    _check(dropout_p, generator)
    keywords = op_keywords(
        (window_left, window_right),
        softcap,
        alibi_slopes=alibi_slopes,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
    )
    keywords |= {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    keywords |= _same_dropout(dropout_p, rng_state)
    return _backward(dout, q, k, v, out, softmax_lse, (dq, dk, dv), softmax_scale, causal, keywords)


def _check(dropout_p: float, generator: None, return_softmax: bool = False) -> None:
    if generator is not None:
        raise RuntimeError("the RNG `generator` argument is no longer supported and must be None")
    if return_softmax and dropout_p == 0.0:
        raise RuntimeError("return_softmax is only supported when p_dropout > 0.0")


def _same_dropout(dropout_p: float, rng_state: Tensor | None) -> dict[str, Any]:
    """The op's arguments for what the forward dropped."""
    if dropout_p == 0.0:
        return {}
    if rng_state is None:
        raise ValueError(f"dropout_p={dropout_p} needs the rng_state that the forward returned")
    return {"dropout_p": dropout_p, "rng_state": rng_state}


def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor | None,
    softmax_scale: float,
    causal: bool,
    keywords: dict[str, Any],
    return_softmax: bool,
) -> Forward:
    computed, softmax_lse = torch.ops.flashattn_rocm.fwd(q, k, v, softmax_scale, causal, **keywords)
    if out is not None:
        computed = out.copy_(computed)
    probs = q.new_empty(0)
    if return_softmax:
        probs = s_dmask(q, k, softmax_lse, softmax_scale, causal, **keywords)
    rng_state = keywords.get("rng_state", torch.zeros(2, dtype=torch.int64, device=q.device))
    return computed, softmax_lse, probs, rng_state


def _backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    gradients: tuple[Tensor | None, Tensor | None, Tensor | None],
    softmax_scale: float,
    causal: bool,
    keywords: dict[str, Any],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    computed = attention_backward(dout, q, k, v, out, softmax_lse, softmax_scale, causal, **keywords)
    dq, dk, dv = (
        new if given is None else given.copy_(new) for given, new in zip(gradients, computed, strict=True)
    )
    return dq, dk, dv, (dout.float() * out.float()).sum(-1).mT.contiguous()
