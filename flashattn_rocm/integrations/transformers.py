"""Attention backend for Hugging Face transformers, through its ``AttentionInterface``.

    from flashattn_rocm.integrations.transformers import register

    register()  # once per process
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float16, attn_implementation="gfx906")

Every attention layer of the model then calls :func:`flashattn_rocm.flash_attn_func`, in prefill and in
decode. Nothing falls back to another algorithm: a layer that the kernels cannot serve raises
``NotImplementedError``, and tensors of a dtype or head dim that they do not serve raise what
``flash_attn_func`` raises.

Padding. The kernel has no mask argument, so each batch row is computed over the key range that its padding
mask keeps, on views of the same tensors; neighbouring rows with the same range share one launch. For a token
that is not padding the result is that of masked attention. For a padding token:

* in a causal layer the output is 0 (what flash-attn's ``pad_input`` gives; torch's math gives other values,
  which no real token ever reads);
* in a bidirectional layer it is what torch's math gives: the padding query attends over the row's real keys.

A row whose mask keeps no key gives 0. A mask that keeps a range with holes in it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, NamedTuple

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    prepare_padding_mask,
    sdpa_mask,
)

from flashattn_rocm import flash_attn_func

# Arguments with which some transformers models change the attention itself. Others (position_ids,
# use_cache, …) travel through the same keyword arguments and do not matter here.
_REFUSED_ARGUMENTS: dict[str, str] = {
    "softcap": "logit soft-capping",
    "s_aux": "attention sinks",
    "sinks": "attention sinks",
    "position_bias": "an additive position bias",
    "indices": "sparse attention over chosen keys",
    "block_indices": "sparse attention over chosen blocks",
    "cu_seq_lens_q": "packed sequences",
    "cu_seq_lens_k": "packed sequences",
}


class _RowGroup(NamedTuple):
    """Neighbouring batch rows [row_begin, row_end) that keep the same keys [key_begin, key_end)."""

    row_begin: int
    row_end: int
    key_begin: int
    key_end: int


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
    AttentionMaskInterface.register(name, padding_mask)
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
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer, with the signature that transformers calls.

    Args:
        module: the attention module; its ``is_causal`` counts where the argument is None.
        query: (batch, heads_q, seqlen_q, head_dim), float16. Views with any strides are used as they are.
        key: (batch, heads_kv, seqlen_k, head_dim), float16; heads_kv divides heads_q.
        value: as key.
        attention_mask: None, or bool (batch, visible): True keeps a key. Keys from ``visible`` on (the unused
            part of a static cache) are not read. In a causal layer the queries are the last seqlen_q of the
            visible keys. Reading a mask costs one copy to the host per layer.
        dropout: must be 0.
        scaling: factor on the logits; None means 1/sqrt(head_dim).
        sliding_window: must not be shorter than the visible keys.
        is_causal: overrides ``module.is_causal``.
        kwargs: what else the model passes along; those that change the attention must be None.

    Returns:
        (output of shape (batch, seqlen_q, heads_q, head_dim), None): the kernels form no attention weights.

    Raises:
        NotImplementedError: names the argument and what of it is not served.
        TypeError, ValueError: from ``flash_attn_func``, for dtypes, shapes and devices.
    """
    q, k, v = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    causal = _is_causal(module, is_causal)
    if attention_mask is not None:
        _check_mask(attention_mask, k)
        k, v = k[:, : attention_mask.shape[1]], v[:, : attention_mask.shape[1]]
    _refuse_unserved(dropout, sliding_window, k.shape[1], kwargs)
    if attention_mask is None:
        return flash_attn_func(q, k, v, softmax_scale=scaling, causal=causal), None
    return _attend_by_rows(q, k, v, _row_groups(attention_mask), scaling, causal), None


def padding_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable = causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> torch.Tensor | None:
    """The mask that :func:`attention_forward` takes; transformers calls it once per forward.

    Args:
        batch_size: rows of the mask.
        q_length: queries of each row.
        kv_length: keys of each row, unwritten slots of a static cache included.
        q_offset: position of the first query (a static cache passes it as a 0-dim tensor).
        kv_offset: position of the first key in the cache.
        mask_function: the model's pattern. It must come out causal or bidirectional on these sizes; a sliding
            window or a chunk that is at least as long as the sequence therefore passes.
        attention_mask: bool (batch, positions seen so far), False on padding, or None.
        use_vmap: the pattern is not written in terms of index tensors.
        device: where to build the mask.
        kwargs: what transformers passes for its own mask functions (dtype, config, …).

    Returns:
        None where every key counts, else bool (batch_size, visible keys).

    Raises:
        NotImplementedError: the pattern is another one (sliding window, chunks, packed sequences, overlays).
    """
    # Keys up to the last query's position; the rest of a static cache holds nothing yet.
    written = int(q_offset) + q_length - kv_offset
    if mask_function is bidirectional_mask_function:
        visible = kv_length
    elif mask_function is causal_mask_function:
        visible = written
    else:
        pattern = sdpa_mask(
            batch_size,
            q_length,
            min(written, kv_length),
            int(q_offset),
            kv_offset,
            mask_function=mask_function,
            allow_is_causal_skip=False,
            use_vmap=use_vmap,
            device=device,
        )
        visible = written if _is_causal_pattern(pattern) else _bidirectional_length(pattern, kv_length)
    if visible > kv_length:
        raise NotImplementedError(
            f"attention_mask: the last query lies {visible - kv_length} positions past the {kv_length} keys"
        )
    kept = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if kept is None:
        if visible == kv_length:
            return None
        return torch.ones(batch_size, visible, dtype=torch.bool, device=device)
    kept = kept[:, kv_offset : kv_offset + visible]
    return None if visible == kv_length and bool(kept.all()) else kept


def _is_causal(module: torch.nn.Module, is_causal: bool | None) -> bool:
    causal = getattr(module, "is_causal", None) if is_causal is None else is_causal
    if causal is None:
        raise NotImplementedError(
            f"is_causal: {type(module).__name__} neither passes it nor has it as an attribute"
        )
    return bool(causal)


def _check_mask(mask: torch.Tensor, k: torch.Tensor) -> None:
    """Refuses a mask that is not bool (batch, visible), visible <= seqlen_k; k is (batch, seqlen_k, …)."""
    if mask.ndim != 2 or mask.dtype != torch.bool:
        raise NotImplementedError(
            "attention_mask: only a 2-D bool padding mask (batch, keys) is served, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}"
        )
    if mask.shape[0] != k.shape[0] or mask.shape[1] > k.shape[1]:
        raise ValueError(
            f"attention_mask must be (batch, keys) with batch = {k.shape[0]} and at most {k.shape[1]} keys, "
            f"got {tuple(mask.shape)}"
        )


def _refuse_unserved(
    dropout: float, sliding_window: int | None, seqlen_k: int, kwargs: dict[str, Any]
) -> None:
    if dropout:
        raise NotImplementedError(f"dropout: only 0.0 is served, got {dropout}; call model.eval()")
    if sliding_window is not None and sliding_window < seqlen_k:
        raise NotImplementedError(
            f"sliding_window: a window shorter than the sequence is not served, got {sliding_window} for "
            f"{seqlen_k} keys"
        )
    if kwargs.get("output_attentions"):
        raise NotImplementedError("output_attentions: the kernels do not form attention weights; use 'eager'")
    for argument, meaning in _REFUSED_ARGUMENTS.items():
        if kwargs.get(argument) is not None:
            raise NotImplementedError(f"{argument}: {meaning} is not served")


def _row_groups(mask: torch.Tensor) -> list[_RowGroup]:
    """Splits a bool mask (batch, keys) into neighbouring rows that keep the same contiguous range of keys.

    Raises:
        NotImplementedError: a row keeps a range with holes in it.
    """
    batch, keys = mask.shape
    if keys == 0:
        return [_RowGroup(0, batch, 0, 0)]
    bits = mask.to(torch.int32)
    count = bits.sum(1)
    first = bits.argmax(1)
    end = torch.where(count > 0, keys - bits.flip(1).argmax(1), 0)
    # One copy to the host for all rows.
    ranges = torch.stack([first, end, count], 1).tolist()
    for row, (first_key, end_key, kept) in enumerate(ranges):
        if end_key - first_key != kept:
            raise NotImplementedError(
                f"attention_mask: row {row} keeps {kept} keys between {first_key} and {end_key}; only "
                "padding at the ends is served, not holes"
            )
    groups = []
    for (first_key, end_key, _), rows in groupby(range(batch), key=ranges.__getitem__):
        members = list(rows)
        groups.append(_RowGroup(members[0], members[-1] + 1, first_key, end_key))
    return groups


def _attend_by_rows(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    groups: list[_RowGroup],
    scaling: float | None,
    causal: bool,
) -> torch.Tensor:
    """One launch per group of rows, over the keys that the group keeps.

    All tensors are (batch, seqlen, heads, head_dim). In a causal layer, queries whose own position is outside
    the kept range are padding and stay 0.
    """
    out = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    seqlen_q = q.shape[1]
    # Causal queries are the last seqlen_q of the keys: query i sits at key position first_query + i.
    first_query = k.shape[1] - seqlen_q
    for group in groups:
        rows, keys = slice(group.row_begin, group.row_end), slice(group.key_begin, group.key_end)
        begin, end = 0, seqlen_q
        if causal:
            begin = max(group.key_begin - first_query, 0)
            end = min(group.key_end - first_query, seqlen_q)
        if begin >= end or group.key_begin == group.key_end:
            continue
        out[rows, begin:end] = flash_attn_func(
            q[rows, begin:end], k[rows, keys], v[rows, keys], softmax_scale=scaling, causal=causal
        )
    return out


def _is_causal_pattern(pattern: torch.Tensor) -> bool:
    """True if a bool pattern (batch, 1, queries, keys) lets each query see just the keys up to itself."""
    queries, keys = pattern.shape[-2:]
    causal = torch.ones(queries, keys, dtype=torch.bool, device=pattern.device).tril(keys - queries)
    return bool((pattern == causal).all())


def _bidirectional_length(pattern: torch.Tensor, kv_length: int) -> int:
    """The number of visible keys of a pattern that is not causal: all of them, or the pattern is refused."""
    if pattern.shape[-1] == kv_length and bool(pattern.all()):
        return kv_length
    raise NotImplementedError(
        "mask_function: a pattern that is neither causal nor bidirectional on these lengths is not served "
        "(a sliding window or chunk shorter than the sequence, packed sequences, or an overlay)"
    )
