"""Joining attention over two sets of keys into attention over both."""

import torch
from torch import Tensor

__all__ = ["merge_states"]


def merge_states(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """Merges the results of the same queries over two disjoint sets of keys, by one kernel.

    Each side weighs as much as its share of the softmax's denominator (Rabe and Staats 2021), which
    its log-sum-exp tells. Names and shapes are those of vLLM's
    ``merge_attn_states``; FlashInfer's ``merge_state`` wants (total, num_heads) and base 2:
    ``lse.T * math.log2(math.e)``.

    A side whose queries saw no key leaves the other as it is, bit for bit, and may hold anything; if both saw
    none, out is 0 and the log-sum-exp -inf. NaN as a log-sum-exp gives NaN.

    All arguments have gradients. Those of the log-sum-exps end there: attention gives none through its
    log-sum-exp, so train on attention over all keys at once.

    Args:
        out_a: (batch, seqlen, num_heads, head_dim), or (total, num_heads, head_dim) of packed sequences;
            float16, bfloat16 or float32, any strides with a contiguous last dimension.
        lse_a: log-sum-exp of its scores, float32, natural logarithm: (batch, num_heads, seqlen), or
            (num_heads, total); any strides. -inf stands for no key, and so does +inf, which flash-attn's
            older kernels give.
        out_b: as out_a, over the other keys.
        lse_b: as lse_a.

    Returns:
        (out, lse) over the keys of both, with the shapes and dtypes of the arguments; sums are in float32.

    Raises:
        TypeError: unequal dtypes, or one that is not served.
        ValueError: shapes, devices or strides that do not go together.
        RuntimeError: no device, no kernels for it, or a failed launch.
    """
    return torch.ops.flashattn_rocm.merge_states(out_a, lse_a, out_b, lse_b)
