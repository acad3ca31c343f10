"""From the arguments of flash-attn's functions to those of ``torch.ops.flashattn_rocm.fwd``."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex

import torch
from torch import Tensor

__all__ = [
    "check_dropout",
    "dropout_keywords",
    "last_dim_contiguous",
    "op_keywords",
    "refuse_block_table",
    "scale_or_none",
    "window_bounds",
]


def last_dim_contiguous(tensor: Tensor) -> Tensor:
    """The tensor itself if its rows are contiguous, else a copy, as upstream makes one."""
    # A 0-dim tensor has no last stride; the op refuses its shape.
    return tensor if tensor.dim() == 0 or tensor.stride(-1) == 1 else tensor.contiguous()


def scale_or_none(softmax_scale: SupportsFloat | None) -> float | None:
    """The scale as the op takes it; numpy numbers and 0-dim tensors are accepted too."""
    return None if softmax_scale is None else float(softmax_scale)


def check_dropout(dropout_p: float) -> None:
    """Refuses what is no probability to drop with.

    Raises:
        ValueError: dropout_p is not in [0, 1).
    """
    if not 0.0 <= dropout_p < 1.0:  # also catches nan
        raise ValueError(f"dropout_p must be in [0, 1); got {dropout_p}")


def dropout_keywords(dropout_p: float, device: torch.device) -> dict[str, Any]:
    """dropout_p and rng_state of the op, or nothing if nothing is dropped.

    rng_state, int64 (seed, offset), is drawn from torch's default generator of the device. So
    ``torch.manual_seed`` repeats what is dropped, activation checkpoints compute it again, a captured graph
    draws anew whenever it is replayed, and no value is waited for on the host.

    Args:
        dropout_p: the share of probabilities to drop; in steps of 2^-16.
        device: of q.

    Raises:
        ValueError: dropout_p is not in [0, 1).
    """
    check_dropout(dropout_p)
    if dropout_p == 0.0:
        return {}
    rng_state = torch.randint(2**63 - 1, (2,), dtype=torch.int64, device=device)
    return {"dropout_p": float(dropout_p), "rng_state": rng_state}


def refuse_block_table(block_table: Tensor | None) -> None:
    """Refuses a paged key/value cache where none is served.

    Raises:
        NotImplementedError: block_table is given.
    """
    if block_table is not None:
        raise NotImplementedError(
            f"block_table of shape {tuple(block_table.shape)} (paged keys and values) is not served here; "
            "flashattn_rocm.flash_attn_varlen_func and flash_attn_with_kvcache take one"
        )


def window_bounds(window_size: Sequence[SupportsIndex]) -> tuple[int, int]:
    """Both bounds as ints, -1 for unbounded.

    Args:
        window_size: (left, right); ints, numpy ints or 0-dim integer tensors. Any negative number means
            unbounded.

    Raises:
        TypeError: it is no pair of integers.
    """
    if not isinstance(window_size, (tuple, list, Tensor, torch.Size)) or len(window_size) != 2:
        raise TypeError(f"window_size must be a pair (left, right) of int; got {window_size!r}")
    left, right = window_size
    try:
        return max(operator.index(left), -1), max(operator.index(right), -1)
    except TypeError as error:
        raise TypeError(f"window_size must be a pair (left, right) of int; got {window_size!r}") from error


def op_keywords(
    window_size: Sequence[SupportsIndex] = (-1, -1), softcap: float = 0.0, **tensors: Tensor | None
) -> dict[str, Any]:
    """The keyword arguments of the op that differ from its defaults.

    Leaving defaults out saves their parsing, about as much time as the rest of a call takes in Python.

    Args:
        window_size: as in flash-attn.
        softcap: as in flash-attn; 0.0 means none.
        tensors: optional tensor arguments of the op, by their names there.

    Raises:
        TypeError: window_size is no pair of integers.
    """
    keywords: dict[str, Any] = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    left, right = window_bounds(window_size)
    if left >= 0:
        keywords["window_left"] = left
    if right >= 0:
        keywords["window_right"] = right
    if softcap != 0.0:
        keywords["softcap"] = float(softcap)
    return keywords
