"""Attention backend for Hugging Face transformers, through its ``AttentionInterface``.

    from flashattn_rocm.integrations.transformers import register

    register()  # once per process
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float16, attn_implementation="gfx906")

Every attention layer of the model then calls :func:`flashattn_rocm.flash_attn_func`, or the varlen form for
packed sequences, in prefill and in decode. Nothing falls back to another algorithm: what the kernels do not
serve raises what those functions raise.

Masks. A causal or bidirectional layer, with or without a sliding window, needs no mask in memory; padding is
a row of bool for each sequence. Any other pattern (chunks, image blocks, a mask of the caller's own) becomes
the bool mask that torch's attention takes, read where it lies. A padding token that sees no key gives 0.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from flashattn_rocm import flash_attn_func, flash_attn_varlen_func
from flashattn_rocm.integrations.transformers_masks import attention_mask as make_mask

__all__ = ["attention_forward", "register"]

# Arguments with which a few models replace dense attention by another. Others (use_cache, position_ids, ...)
# travel through the same keyword arguments and do not matter here.
_REFUSED_ARGUMENTS = {
    "indices": "sparse attention over chosen keys",
    "block_indices": "sparse attention over chosen blocks",
    "block_table": "a paged cache",
}


def register(name: str = "gfx906") -> str:
    """Registers the attention function and its mask function with transformers.

    Args:
        name: what models pass as ``attn_implementation``. It must not contain "flash": transformers takes
            such a name for one of its own flash-attention packages and never looks it up. Calling again with
            the same name changes nothing.

    Returns:
        The name.

    Raises:
        ValueError: the name contains "flash", is not an identifier, or is already another implementation's.
    """
    if "flash" in name:
        raise ValueError(f'name must not contain "flash" (transformers reserves such names), got {name!r}')
    if not name.isidentifier():
        raise ValueError(
            f"name must be an identifier (transformers gives '|', '/', ':' a meaning), got {name!r}"
        )
    registered = AttentionInterface()
    if name == "eager" or (name in registered and registered[name] is not attention_forward):
        raise ValueError(f"name {name!r} is already another attention implementation's; choose another")
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, make_mask)
    return name


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    cu_seq_lens_k: torch.Tensor | None = None,
    max_length_q: int | None = None,
    max_length_k: int | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer, with the signature that transformers calls.

    Args:
        module: the attention module; its ``is_causal`` counts where the argument is None.
        query: (batch, heads_q, seqlen_q, head_dim). Views with any strides are used as they are.
        key: (batch, heads_kv, seqlen_k, head_dim); heads_kv divides heads_q.
        value: (batch, heads_kv, seqlen_k, head_dim_v).
        attention_mask: what :mod:`.transformers_masks` makes, or 4-D, which then says all: bool, True keeps a
            key, or added to the logits.
        dropout: share of the probabilities that are dropped, in [0, 1).
        scaling: factor on the logits; None means 1/sqrt(head_dim).
        sliding_window: of a causal layer: how many keys a query sees, itself included; of another one, one
            less than that to each side.
        softcap: bound on the logits; None or 0 means none.
        is_causal: overrides ``module.is_causal``. Queries are the last seqlen_q of the visible keys.
        s_aux: (heads_q,): attention sinks.
        position_bias: broadcasts to (batch, heads_q, seqlen_q, seqlen_k): added to the logits.
        cu_seq_lens_q: (sequences + 1,), int32: the rows of the batch, laid end to end, are these sequences.
        cu_seq_lens_k: likewise for the keys.
        max_length_q: the longest of them.
        max_length_k: likewise.
        kwargs: what else the model passes along; those that change the attention must be None.

    Returns:
        (output of shape (batch, seqlen_q, heads_q, head_dim_v), None): the kernels form no attention weights.

    Raises:
        NotImplementedError: names the argument and what of it is not served.
        TypeError, ValueError: for dtypes, shapes and devices.
    """
    _refuse_unserved(kwargs)
    q, k, v = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    causal = _is_causal(module, is_causal)
    options: dict[str, Any] = {
        "dropout_p": dropout,
        "softmax_scale": scaling,
        "softcap": softcap or 0.0,
        "sinks": s_aux,
    }
    if sliding_window is not None:
        options["window_size"] = (sliding_window - 1, 0 if causal else sliding_window - 1)
    if attention_mask is not None and attention_mask.dim() == 1:
        cu_seq_lens_q = cu_seq_lens_k = attention_mask
    if cu_seq_lens_q is not None and cu_seq_lens_k is not None:
        if position_bias is not None:
            raise NotImplementedError("position_bias is not served with packed sequences; pass one a row")
        packed: Any = flash_attn_varlen_func(
            q.flatten(0, 1),
            k.flatten(0, 1),
            v.flatten(0, 1),
            cu_seq_lens_q,
            cu_seq_lens_k,
            q.shape[1] if max_length_q is None else max_length_q,
            k.shape[1] if max_length_k is None else max_length_k,
            causal=causal,
            **options,
        )
        return packed.unflatten(0, q.shape[:2]), None
    bias = None
    if attention_mask is not None and attention_mask.dim() == 2:
        visible = attention_mask.shape[1]
        k, v, bias = k[:, :visible], v[:, :visible], attention_mask[:, None, None]
    elif attention_mask is not None:
        causal = False
        options.pop("window_size", None)
        bias = attention_mask[..., : k.shape[1]]
    if position_bias is not None:
        bias = _with_position_bias(bias, position_bias[..., : k.shape[1]])
    out: Any = flash_attn_func(q, k, v, causal=causal, attn_bias=bias, **options)
    return out, None


def _is_causal(module: torch.nn.Module, is_causal: bool | None) -> bool:
    causal = getattr(module, "is_causal", None) if is_causal is None else is_causal
    if causal is None:
        raise NotImplementedError(
            f"is_causal: {type(module).__name__} neither passes it nor has it as an attribute"
        )
    return bool(causal)


def _refuse_unserved(kwargs: dict[str, Any]) -> None:
    if kwargs.get("output_attentions"):
        raise NotImplementedError("output_attentions: the kernels do not form attention weights; use 'eager'")
    for argument, meaning in _REFUSED_ARGUMENTS.items():
        if kwargs.get(argument) is not None:
            raise NotImplementedError(f"{argument}: {meaning} is not served")


def _with_position_bias(bias: torch.Tensor | None, position_bias: torch.Tensor) -> torch.Tensor:
    if bias is None:
        return position_bias
    if bias.dtype == torch.bool:
        return position_bias.masked_fill(~bias, -torch.inf)
    return position_bias + bias
