"""The private functions of upstream's interface, as torch custom ops in the namespace ``flash_attn``.

Upstream's are such ops too, with the same parameter names: ring-flash-attn reads these from ``_init_fn``,
diffusers and yunchang call the ops through the dispatcher. None of them has a derivative.
"""

from typing import Any

import torch
from torch import Tensor

from flash_attn import flash_attn_gpu
from flashattn_rocm.arguments import last_dim_contiguous as maybe_contiguous


@torch.library.custom_op("flash_attn::_flash_attn_forward", mutates_args=(), device_types=("cpu", "cuda"))
def _flash_attn_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Tensor | None,
    return_softmax: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    q, k, v = (maybe_contiguous(tensor) for tensor in (q, k, v))
    return flash_attn_gpu.fwd(
        q,
        k,
        v,
        None,
        alibi_slopes,
        dropout_p,
        softmax_scale,
        causal,
        window_size_left,
        window_size_right,
        softcap,
        return_softmax,
        None,
    )


@torch.library.custom_op(
    "flash_attn::_flash_attn_varlen_forward", mutates_args=(), device_types=("cpu", "cuda")
)
def _flash_attn_varlen_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int = -1,
    window_size_right: int = -1,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    return_softmax: bool = False,
    block_table: Tensor | None = None,
    leftpad_k: Tensor | None = None,
    seqused_k: Tensor | None = None,
    zero_tensors: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    q, k, v = (maybe_contiguous(tensor) for tensor in (q, k, v))
    return flash_attn_gpu.varlen_fwd(
        q,
        k,
        v,
        None,
        cu_seqlens_q,
        cu_seqlens_k,
        seqused_k,
        leftpad_k,
        block_table,
        alibi_slopes,
        max_seqlen_q,
        max_seqlen_k,
        dropout_p,
        softmax_scale,
        zero_tensors,
        causal,
        window_size_left,
        window_size_right,
        softcap,
        return_softmax,
        None,
    )


@torch.library.custom_op(
    "flash_attn::_flash_attn_backward", mutates_args=("dq", "dk", "dv"), device_types=("cpu", "cuda")
)
def _flash_attn_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq: Tensor | None,
    dk: Tensor | None,
    dv: Tensor | None,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Tensor | None,
    deterministic: bool,
    rng_state: Tensor | None = None,
) -> Tensor:
    dout, q, k, v, out = (maybe_contiguous(tensor) for tensor in (dout, q, k, v, out))
    return flash_attn_gpu.bwd(
        dout,
        q,
        k,
        v,
        out,
        softmax_lse,
        dq,
        dk,
        dv,
        alibi_slopes,
        dropout_p,
        softmax_scale,
        causal,
        window_size_left,
        window_size_right,
        softcap,
        deterministic,
        None,
        rng_state,
    )[-1]


@torch.library.custom_op(
    "flash_attn::_flash_attn_varlen_backward", mutates_args=("dq", "dk", "dv"), device_types=("cpu", "cuda")
)
def _flash_attn_varlen_backward(
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
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Tensor | None,
    deterministic: bool,
    rng_state: Tensor | None = None,
    zero_tensors: bool = False,
) -> Tensor:
    dout, q, k, v, out = (maybe_contiguous(tensor) for tensor in (dout, q, k, v, out))
    return flash_attn_gpu.varlen_bwd(
        dout,
        q,
        k,
        v,
        out,
        softmax_lse,
        dq,
        dk,
        dv,
        cu_seqlens_q,
        cu_seqlens_k,
        alibi_slopes,
        max_seqlen_q,
        max_seqlen_k,
        dropout_p,
        softmax_scale,
        zero_tensors,
        causal,
        window_size_left,
        window_size_right,
        softcap,
        deterministic,
        None,
        rng_state,
    )[-1]


def _empty_forward(
    q: Tensor, k: Tensor, v: Tensor, probs: tuple[int, ...], **keywords: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    out, softmax_lse = torch.ops.flashattn_rocm.fwd(q, k, v, **keywords)
    return out, softmax_lse, q.new_empty(probs), q.new_empty(2, dtype=torch.int64)


@_flash_attn_forward.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, *options: Any, return_softmax: bool | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with_probs = options[7] if return_softmax is None else return_softmax
    probs = (q.shape[0], q.shape[2], q.shape[1], k.shape[1]) if with_probs else (0,)
    return _empty_forward(q, k, v, probs)


@_flash_attn_varlen_forward.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *options: Any,
    return_softmax: bool = False,
    **more: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with_probs = options[7] if len(options) > 7 else return_softmax
    probs = (cu_seqlens_q.shape[0] - 1, q.shape[1], max_seqlen_q, max_seqlen_k) if with_probs else (0,)
    return _empty_forward(q, k, v, probs, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)


@_flash_attn_backward.register_fake
def _(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, softmax_lse: Tensor, *options: Any
) -> Tensor:
    return torch.empty_like(softmax_lse)


@_flash_attn_varlen_backward.register_fake
def _(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, softmax_lse: Tensor, *options: Any
) -> Tensor:
    return torch.empty_like(softmax_lse)
