"""Gradients from tensors that the caller kept, and of tensors that hold several operands."""

from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.arguments import last_dim_contiguous

__all__ = ["attention_backward", "attention_of_packed"]


def attention_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    softmax_scale: float | None,
    causal: bool,
    **keywords: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``torch.ops.flashattn_rocm.fwd``, by the out and softmax_lse that are given.

    Those may be of more keys than k has, as in ring attention; the gradients are then these keys' share.

    Args:
        dout: gradient of out.
        q: as in the forward, and so are the other arguments.
        k: as in the forward.
        v: as in the forward.
        out: what the forward gave.
        softmax_lse: what the forward gave.
        softmax_scale: as in the forward.
        causal: as in the forward.
        keywords: the keyword arguments of the forward.

    Returns:
        (dq, dk, dv), with the layouts of q, k and v.
    """
    return torch.ops.flashattn_rocm.bwd(dout, q, k, v, out, softmax_lse, softmax_scale, causal, **keywords)[
        :3
    ]


def attention_of_packed(
    q: Tensor | None,
    packed: Tensor,
    softmax_scale: float | None,
    causal: bool,
    keywords: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """``torch.ops.flashattn_rocm.fwd`` of operands that lie side by side in one tensor.

    Its gradient is written into one tensor as well; autograd on the parts would make three and stack them.

    Args:
        q: the queries, or None if they lie in packed too.
        packed: (…, 3 or 2, heads, head_dim): queries, keys and values, or keys and values.
        softmax_scale: as in the op.
        causal: as in the op.
        keywords: the op's keyword arguments.

    Returns:
        (out, softmax_lse).
    """
    needs_gradient = packed.requires_grad or (q is not None and q.requires_grad)
    others_do = any(isinstance(value, Tensor) and value.requires_grad for value in keywords.values())
    # Else fwd casts, or says what is missing.
    autocast = torch.is_autocast_enabled(packed.device.type)
    if torch.is_grad_enabled() and needs_gradient and not others_do and not autocast:
        return _PackedAttention.apply(q, packed, softmax_scale, causal, keywords)
    return torch.ops.flashattn_rocm.fwd(*_operands(q, packed), softmax_scale, causal, **keywords)


def _operands(q: Tensor | None, packed: Tensor) -> tuple[Tensor, ...]:
    parts = packed.unbind(-3)
    return parts if q is None else (q, *parts)


class _PackedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor | None,
        packed: Tensor,
        softmax_scale: float | None,
        causal: bool,
        keywords: dict[str, Any],
    ) -> tuple[Tensor, Tensor]:
        out, lse = torch.ops.flashattn_rocm.fwd(*_operands(q, packed), softmax_scale, causal, **keywords)
        ctx.save_for_backward(q, packed, out, lse)
        ctx.options = softmax_scale, causal, keywords
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, dout: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        q, packed, out, lse = ctx.saved_tensors
        softmax_scale, causal, keywords = ctx.options
        forward = (last_dim_contiguous(dout), *_operands(q, packed), out, lse)
        if torch.is_grad_enabled():  # create_graph: bwd refuses a second derivative once it is asked for
            gradients = torch.ops.flashattn_rocm.bwd(*forward, softmax_scale, causal, **keywords)[:3]
            of_q = 3 - packed.shape[-3]
            dq, dpacked = (gradients[0] if of_q else None), torch.stack(gradients[of_q:], -3)
        else:
            # Rows of no sequence are not written.
            has_gaps = "cu_seqlens_q" in keywords or "seqused_k" in keywords
            empty = torch.zeros_like if has_gaps else torch.empty_like
            dq, dpacked = None if q is None else empty(q), empty(packed)
            torch.ops.flashattn_rocm.bwd_into(
                *forward, *_operands(dq, dpacked), softmax_scale, causal, **keywords
            )
        return dq, dpacked, None, None, None
