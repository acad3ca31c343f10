"""Records of the calls that reach the op."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import flashattn_rocm


class Recorder(TorchDispatchMode):
    """Keeps the arguments of each flashattn_rocm::fwd."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[tuple, dict]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        if func is torch.ops.flashattn_rocm.fwd.default:
            self.calls.append((args, kwargs or {}))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as mode:
        yield mode


@pytest.fixture(autouse=True)
def torchs_own_attention_afterwards() -> Iterator[None]:
    yield
    flashattn_rocm.disable_sdpa()
