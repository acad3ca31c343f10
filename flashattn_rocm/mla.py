"""Decoding of multi-head latent attention (DeepSeek-V2): all heads read one row of a cache for each token."""

from typing import SupportsFloat

import torch
from torch import Tensor

from flashattn_rocm.kvcache import flash_attn_with_kvcache

__all__ = ["flash_mla_with_kvcache"]


def flash_mla_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    block_table: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    head_dim_v: int = 512,
    *,
    k: Tensor | None = None,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    num_splits: int = 0,
) -> tuple[Tensor, Tensor]:
    """Attends to a cache of latents: keys are whole rows, values their first 512 columns.

    Names and shapes are FlashMLA's, which wants a schedule beside them; here splits follow from the shapes.
    K and V are read once. Queries and keys come as the absorbed form has them: the latent part through the
    up-projection of the keys, the last 64 columns turned by their positions.

    Args:
        q: (batch, seqlen_q, num_heads, 576), float16 or bfloat16: 512 latent columns, then 64 rotary ones.
        k_cache: (num_blocks, page_block_size, 1, 576), pages of a multiple of 16 keys; without block_table
            (batch, seqlen_cache, 1, 576). dtype of q.
        block_table: (batch, max_num_blocks_per_seq), int32.
        cache_seqlens: (batch,), int32, or one int for all: keys in the cache before the call.
        head_dim_v: 512.
        k: (batch, seqlen_new, 1, 576), appended to the cache.
        softmax_scale: None means 1 / sqrt(576); DeepSeek's models want that of their heads before absorption,
            1 / sqrt(192) and what their context's extension multiplies it by.
        causal: as in :func:`flashattn_rocm.flash_attn_with_kvcache`.
        num_splits: likewise.

    Returns:
        out (batch, seqlen_q, num_heads, 512), dtype of q; softmax_lse (batch, num_heads, seqlen_q), float32.

    Raises:
        NotImplementedError, RuntimeError, TypeError, ValueError: as flash_attn_with_kvcache.
    """
    if head_dim_v != 512 or k_cache.dim() != 4 or k_cache.shape[-1] != 576:
        raise ValueError(
            "latent caches must have 576 columns, of which head_dim_v=512 are values; "
            f"head_dim_v={head_dim_v}, k_cache has shape {tuple(k_cache.shape)}"
        )
    out, lse = flash_attn_with_kvcache(
        q,
        k_cache,
        k_cache[..., :head_dim_v],
        k,
        None if k is None else k[..., :head_dim_v],
        cache_seqlens=cache_seqlens,
        block_table=block_table,
        softmax_scale=softmax_scale,
        causal=causal,
        num_splits=num_splits,
        return_softmax_lse=True,
    )
    assert isinstance(lse, torch.Tensor)
    return out, lse
