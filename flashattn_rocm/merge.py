"""Joining attention over two sets of keys into attention over both."""

import torch
from torch import Tensor

__all__ = ["merge_states"]


def merge_states(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """Merges the results of the same queries over two disjoint sets of keys.

    Plain torch, differentiable, on any device; sums are in float32. A side whose queries saw no key
    (log-sum-exp -inf) leaves the other as it is, bit for bit; if both saw none, so does the result.

    Args:
        out_a: (batch, seqlen, num_heads, head_dim), or (total, num_heads, head_dim) of packed sequences.
        lse_a: log-sum-exp of its scores, natural logarithm: (batch, num_heads, seqlen), or
            (num_heads, total).
        out_b: as out_a, over the other keys.
        lse_b: as lse_a.

    Returns:
        (out, lse) over the keys of both, with the shapes of the arguments; out has the dtype of out_a, lse is
        float32.

    Raises:
        ValueError: the shapes do not go together.
    """
    if out_a.dim() not in (3, 4):
        raise ValueError(f"out_a must have 3 or 4 dimensions; got {tuple(out_a.shape)}")
    rows = out_a.shape[:-1]
    lse_shape = torch.Size((*rows[:-2], rows[-1], rows[-2]))
    for name, tensor, shape in (
        ("out_b", out_b, out_a.shape),
        ("lse_a", lse_a, lse_shape),
        ("lse_b", lse_b, lse_shape),
    ):
        if tensor.shape != shape:
            raise ValueError(
                f"{name} must have shape {tuple(shape)} to go with out_a of {tuple(out_a.shape)}; "
                f"got {tuple(tensor.shape)}"
            )
    a, b = lse_a.float(), lse_b.float()
    # Equal ones include -inf twice, whose difference would be nan.
    difference = torch.where(a == b, 0.0, b - a)
    weight_b = torch.sigmoid(difference).mT[..., None]
    out = out_a.float() * (1 - weight_b) + out_b.float() * weight_b
    return out.to(out_a.dtype), torch.logaddexp(a, b)
