"""Attention for ComfyUI, to be used from a custom node.

ComfyUI picks its attention by the card's name and has nothing for gfx906 but a sub-quadratic one, which is
slow, and torch's, which holds the score matrix. Three ways lead here:

* ``--use-flash-attention`` with the package flash-attn of shim/ (no node needed; masks go to torch's
  attention, which FLASHATTN_ROCM_SDPA=1 brings here too);
* ``register()`` in a custom node, which lists :func:`attention` among ComfyUI's functions;
* ``model_options["transformer_options"]["optimized_attention_override"] = override`` for one model.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.interface import flash_attn_func

__all__ = ["attention", "override", "register"]


def register(name: str = "flashattn_rocm") -> str:
    """Lists :func:`attention` among ComfyUI's attention functions.

    Args:
        name: under which it is listed.

    Returns:
        The name.

    Raises:
        RuntimeError: this is not a ComfyUI process, or one without such a list.
    """
    module = sys.modules.get("comfy.ldm.modules.attention")
    function: Callable | None = getattr(module, "register_attention_function", None)
    if function is None:
        raise RuntimeError(
            "comfy.ldm.modules.attention.register_attention_function is not there; call register() from a "
            "custom node of a ComfyUI that has it"
        )
    function(name, attention)
    return name


def override(replaced: Callable, *args: Any, **kwargs: Any) -> Tensor:
    """:func:`attention` in the place of the function that ComfyUI would have called."""
    return attention(*args, **kwargs)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    heads: int,
    mask: Tensor | None = None,
    attn_precision: torch.dtype | None = None,
    skip_reshape: bool = False,
    skip_output_reshape: bool = False,
    **kwargs: Any,
) -> Tensor:
    """What ComfyUI calls an attention function.

    Args:
        q: (batch, seqlen, heads * head_dim), or with skip_reshape (batch, heads, seqlen, head_dim).
            Views with any strides are used as they are.
        k: likewise.
        v: likewise.
        heads: of q.
        mask: broadcasts to (batch, heads, seqlen_q, seqlen_k) once the missing dimensions are in front (heads
            for a 3-D mask): bool, or added to the scores.
        attn_precision: accepted; sums and the softmax are in float32 in any case.
        skip_reshape: see q.
        skip_output_reshape: return (batch, heads, seqlen, head_dim) instead of
            (batch, seqlen, heads * head_dim).
        kwargs: scale is honoured; what else ComfyUI passes (transformer_options, ...) does not concern the
            attention itself. Fewer heads in k and v are a group each, whether enable_gqa is passed or not.

    Returns:
        See skip_output_reshape.

    Raises:
        NotImplementedError, TypeError, ValueError: from :func:`flashattn_rocm.flash_attn_func`.
    """
    if skip_reshape:
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    else:
        head_dim = q.shape[-1] // heads
        q, k, v = (tensor.unflatten(-1, (-1, head_dim)) for tensor in (q, k, v))
    if mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    if mask is not None and mask.dtype not in (torch.bool, q.dtype, torch.float32):
        mask = mask.to(q.dtype)
    out: Any = flash_attn_func(q, k, v, softmax_scale=kwargs.get("scale"), attn_bias=mask)
    return out.transpose(1, 2) if skip_output_reshape else out.flatten(2)
