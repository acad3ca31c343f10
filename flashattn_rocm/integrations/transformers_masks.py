"""Masks for :mod:`.transformers` that are as small as the model's pattern allows.

transformers describes a pattern as a function of indices and asks for a mask once per forward. What the
kernels know by their arguments needs no mask; the function here finds out which patterns these are.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getclosurevars
from typing import Any

import torch
from transformers import masking_utils
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    prepare_padding_mask,
    sdpa_mask,
)

__all__ = ["attention_mask"]


def attention_mask(
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
    """The mask that :func:`.transformers.attention_forward` takes.

    Args:
        batch_size: rows of the mask.
        q_length: queries of each row.
        kv_length: keys of each row, unwritten slots of a static cache included.
        q_offset: position of the first query (a static cache passes it as a 0-dim tensor).
        kv_offset: position of the first key in the cache.
        mask_function: the model's pattern.
        attention_mask: bool (batch, positions seen so far), False on padding, or None.
        use_vmap: the pattern is not written in terms of index tensors.
        device: where to build the mask.
        kwargs: what transformers passes for its own mask functions (dtype, config, ...).

    Returns:
        * None: every key counts, as far as causality and the layer's window allow.
        * bool (batch_size or 1, visible): likewise, of the first ``visible`` keys those that are True.
        * int32 (sequences + 1,): all rows laid end to end are these sequences, each by itself.
        * bool (batch_size, 1, q_length, kv_length): exactly these keys count.
    """
    bidirectional = mask_function is bidirectional_mask_function
    by_arguments = bidirectional or _is_causal_or_windowed(mask_function)
    sequences = _packed_sequences(mask_function)
    if sequences is not None and attention_mask is None:
        return _cu_seqlens(sequences.expand(batch_size, -1))
    # A position that lives on the card is read only where the mask would be large.
    unread = isinstance(q_offset, torch.Tensor) and (q_length == 1 or torch.compiler.is_compiling())
    if not by_arguments or (unread and not bidirectional):
        return sdpa_mask(
            batch_size,
            q_length,
            kv_length,
            q_offset,
            kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            allow_is_causal_skip=False,
            use_vmap=use_vmap,
            device=device,
        )
    # Keys up to the last query's position; the rest of a static cache holds nothing yet.
    visible = kv_length if bidirectional else int(q_offset) + q_length - kv_offset
    if visible > kv_length:
        raise NotImplementedError(
            f"attention_mask: the last query lies {visible - kv_length} positions past the {kv_length} keys"
        )
    kept = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if kept is not None and (torch.compiler.is_compiling() or not bool(kept.all())):
        return kept[:, kv_offset : kv_offset + visible]
    return None if visible == kv_length else torch.ones(1, visible, dtype=torch.bool, device=device)


def _parts(mask_function: Callable) -> tuple[Callable, ...]:
    """The functions that and_masks joined, or the function itself."""
    if _made_by(mask_function, "and_masks"):
        return tuple(getclosurevars(mask_function).nonlocals["mask_functions"])
    return (mask_function,)


def _made_by(function: Callable, maker: str) -> bool:
    return (
        getattr(function, "__module__", None) == masking_utils.__name__
        and getattr(function, "__qualname__", "").split(".")[0] == maker
    )


def _is_causal_or_windowed(mask_function: Callable) -> bool:
    """Whether the pattern is causal but for a sliding window, whose length the layer has too."""
    return all(
        part is causal_mask_function or _made_by(part, "sliding_window_overlay")
        for part in _parts(mask_function)
    ) and causal_mask_function in _parts(mask_function)


def _packed_sequences(mask_function: Callable) -> torch.Tensor | None:
    """The number of each token's sequence, (batch, length), if that is all that the pattern adds."""
    parts = _parts(mask_function)
    if len(parts) != 2 or not _made_by(parts[1], "packed_sequence_mask_function"):
        return None
    if not _made_by(parts[0], "remap_positions_for_packed_sequence"):
        return None
    if not _is_causal_or_windowed(getclosurevars(parts[0]).nonlocals["mask_function"]):
        return None
    return getclosurevars(parts[1]).nonlocals["packed_sequence_mask"]


def _cu_seqlens(sequences: torch.Tensor) -> torch.Tensor:
    """Where each sequence begins in the rows laid end to end; copies the count to the host."""
    begins = torch.ones_like(sequences, dtype=torch.bool)
    begins[:, 1:] = sequences[:, 1:] != sequences[:, :-1]
    ends = torch.tensor([sequences.numel()], device=sequences.device)
    return torch.cat([begins.flatten().nonzero().flatten(), ends]).to(torch.int32)
