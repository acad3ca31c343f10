"""Tensors that lie in larger buffers full of NaN, so that a read beside them shows in the result."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Poisoned:
    """A view into a buffer whose other elements are NaN.

    Attributes:
        view: the tensor, with the strides that were asked for.
        buffer: the whole storage.
        before: a copy of the storage, taken when the view had been filled.
    """

    view: Tensor
    buffer: Tensor
    before: Tensor

    def assert_unchanged(self) -> None:
        """Inputs are const, and so is what lies around them."""
        same = self.buffer.view(torch.int16) == self.before.view(torch.int16)
        assert same.all(), f"{int((~same).sum())} elements in or beside an input were written"


def embed(tensor: Tensor, order: tuple[int, ...] = (0, 1, 2, 3), pad: int = 8, offset: int = 16) -> Poisoned:
    """Copies a tensor into a poisoned buffer.

    Args:
        tensor: any shape with a contiguous last dimension as the innermost one.
        order: the dimensions from outermost to innermost in memory; ends with the last one.
        pad: poisoned elements after each innermost row; also one poisoned row after each other dimension.
        offset: poisoned elements before the first row; with pad it sets the alignment (8 halfs = 16 bytes).
    """
    assert order[-1] == tensor.dim() - 1
    strides = [1] * tensor.dim()
    step = tensor.shape[-1] + pad
    for dim in reversed(order[:-1]):
        strides[dim] = step
        step *= tensor.shape[dim] + 1
    buffer = torch.full((offset + step + pad,), math.nan, dtype=tensor.dtype, device=tensor.device)
    view = buffer.as_strided(tensor.shape, strides, offset)
    view.copy_(tensor)
    return Poisoned(view, buffer, buffer.clone())
