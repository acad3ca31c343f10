"""The registrations with torch's dispatcher; they last as long as the object."""

import os
import sys
from typing import Any

import torch
from torch import Tensor

from flashattn_rocm import _C
from flashattn_rocm.manifest import kernel_archs
from flashattn_rocm.torch_sdpa.aten_flash import KERNELS
from flashattn_rocm.torch_sdpa.attention import attend
from flashattn_rocm.torch_sdpa.counts import SdpaCounts

__all__ = ["Override", "served_device_type"]

# What the kernels raise for arguments that they do not serve. A failed launch is a plain RuntimeError, and no
# reason to compute the same elsewhere.
_REFUSALS = (NotImplementedError, TypeError, ValueError)


def served_device_type() -> str:
    """The device type whose attention runs on the kernels: "cuda" (a ROCm card) or "cpu" (simulated)."""
    backend = os.environ.get("FLASHATTN_ROCM_BACKEND", "auto")
    return {"hip": "cuda", "sim": "cpu"}.get(backend, "cuda" if _C.built_for_rocm_torch else "cpu")


class Override:
    """aten::scaled_dot_product_attention and aten's flash operations on the kernels.

    Attributes:
        fallback: whether torch computes what the kernels refuse; otherwise that is an error.
        counts: where it counts what happens.
    """

    def __init__(self, fallback: bool, counts: SdpaCounts) -> None:
        self.fallback = fallback
        self.counts = counts
        key = {"cuda": "CUDA", "cpu": "CPU"}[served_device_type()]
        self._library = torch.library.Library("aten", "IMPL")
        # Under inference_mode tensors have no autograd key, otherwise that one comes first.
        for dispatch_key in (f"Autograd{key}", key):
            self._library.impl("scaled_dot_product_attention", self._attention, dispatch_key)
        for name, kernel in KERNELS.items():
            if hasattr(torch.ops.aten, name):
                self._library.impl(name, kernel, key)

    def remove(self) -> None:
        """Takes every registration back; the object is of no further use."""
        self._library._destroy()

    def _attention(
        self, query: Tensor, key: Tensor, value: Tensor, *arguments: Any, **options: Any
    ) -> Tensor:
        try:
            _check_card(query.device)
            out = _attend_sharded if _is_dtensor(query) else attend
            result = out(query, key, value, *arguments, **options)
        except _REFUSALS as error:
            if not self.fallback:
                raise
            stock = torch.ops.aten.scaled_dot_product_attention.default
            result = stock.decompose(query, key, value, *arguments, **options)
            self.counts.add_fallback(error)  # not if torch refuses the arguments too
            return result
        self.counts.served += 1
        return result


def _check_card(device: torch.device) -> None:
    """A host may hold other cards beside the served ones."""
    if device.type != "cuda":
        return
    arch = torch.cuda.get_device_properties(device).gcnArchName.split(":")[0]
    if arch not in kernel_archs():
        raise NotImplementedError(f"{device} is a {arch}, which has no kernels here")


def _is_dtensor(tensor: Tensor) -> bool:
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def _attend_sharded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Torch shards its own flash operation, whose kernel is ours then."""
    if attn_mask is not None or enable_gqa:
        raise NotImplementedError("attn_mask and enable_gqa are not served for a DTensor")
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    return flash(query, key, value, dropout_p, is_causal, scale=scale)[0]
