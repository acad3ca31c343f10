"""Switching scaled_dot_product_attention to these kernels and back.

    flashattn_rocm.enable_sdpa()            # for the process
    with flashattn_rocm.sdpa() as counts:   # for a block
    FLASHATTN_ROCM_SDPA=1 python program.py # for a program that does not know this package

and, where torch has it (2.10 and later), ``torch.nn.attention.activate_flash_attention_impl("GFX906")``.

The override is at the dispatcher: it reaches every caller of torch.nn.functional.scaled_dot_product_attention
whatever name they imported it by, and graphs that torch.compile traces while it is on. It does not reach
``torch.vmap``, nested tensors, and the fast path of nn.MultiheadAttention in eval mode, which
``torch.backends.mha.set_fastpath_enabled(False)`` turns off.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch.nn.attention

from flashattn_rocm.torch_sdpa.counts import SdpaCounts
from flashattn_rocm.torch_sdpa.override import Override

__all__ = [
    "disable_sdpa",
    "enable_from_environment",
    "enable_sdpa",
    "register_with_torch",
    "sdpa",
    "sdpa_counts",
]

_VARIABLE = "FLASHATTN_ROCM_SDPA"
_active: Override | None = None


def enable_sdpa(*, fallback: bool = True) -> None:
    """Lets these kernels compute torch.nn.functional.scaled_dot_product_attention from now on.

    They do so for tensors on ``cuda`` with a ROCm torch, else (on the simulated card) for tensors on ``cpu``.

    Args:
        fallback: whether torch computes what the kernels do not serve. Each reason is warned of once and
            counted by :func:`sdpa_counts`. With False it raises what ``flash_attn_func`` raises.
    """
    _install(fallback, SdpaCounts())


def disable_sdpa() -> None:
    """Gives torch its own attention back, exactly as it was; without effect if it has it."""
    global _active
    if _active is not None:
        _active.remove()
    _active = None


@contextmanager
def sdpa(*, fallback: bool = True) -> Iterator[SdpaCounts]:
    """As :func:`enable_sdpa` within a ``with`` block, for all threads; afterwards things are as before.

    Args:
        fallback: see :func:`enable_sdpa`.

    Yields:
        The counts of the block.
    """
    before = _active
    counts = SdpaCounts()
    _install(fallback, counts)
    try:
        yield counts
    finally:
        if before is None:
            disable_sdpa()
        else:
            _install(before.fallback, before.counts)


def sdpa_counts() -> SdpaCounts:
    """What was served and what was not since :func:`enable_sdpa`.

    Raises:
        RuntimeError: the override is not on.
    """
    if _active is None:
        raise RuntimeError("torch has its own attention; call flashattn_rocm.enable_sdpa() first")
    return _active.counts


def enable_from_environment() -> None:
    """Does what FLASHATTN_ROCM_SDPA says: 0 or not set nothing, 1 with fallback, strict without.

    Raises:
        ValueError: for another value.
    """
    value = os.environ.get(_VARIABLE, "0")
    if value not in ("0", "1", "strict"):
        raise ValueError(f"{_VARIABLE}={value} is unknown; allowed are 0, 1 and strict")
    if value != "0":
        enable_sdpa(fallback=value == "1")


def register_with_torch() -> None:
    """Offers the switch under torch's own name for such switches, where torch has one; it stays off."""
    register = getattr(torch.nn.attention, "register_flash_attention_impl", None)
    if register is not None:
        register("GFX906", register_fn=_Activation)


class _Activation:
    """What torch holds while "GFX906" is active."""

    def __init__(self) -> None:
        enable_sdpa()

    def remove(self) -> None:
        disable_sdpa()


def _install(fallback: bool, counts: SdpaCounts) -> None:
    global _active
    disable_sdpa()
    _active = Override(fallback, counts)
