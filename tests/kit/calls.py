"""Records of the calls that reach the op."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class CallRecorder(TorchDispatchMode):
    """Keeps the positional and keyword arguments of each flashattn_rocm::fwd."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[tuple, dict]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        if func is torch.ops.flashattn_rocm.fwd.default:
            self.calls.append((args, kwargs or {}))
        return func(*args, **(kwargs or {}))
