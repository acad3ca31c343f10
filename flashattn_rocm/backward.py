"""Gradients from tensors that the caller kept, for those who bring their own autograd."""

from typing import Any

import torch
from torch import Tensor

__all__ = ["attention_backward"]


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
        (dq, dk, dv).

    Raises:
        NotImplementedError: this build has no backward.
    """
    if not hasattr(torch.ops.flashattn_rocm, "bwd"):
        raise NotImplementedError("the backward is not served yet; compute attention under torch.no_grad()")
    return torch.ops.flashattn_rocm.bwd(dout, q, k, v, out, softmax_lse, softmax_scale, causal, **keywords)
