"""``flash_attn_with_kvcache`` of flash-attn 2.8: decoding, append and rotary embedding on a KV cache.

Names, order of arguments, defaults, shapes and semantics are upstream's. What upstream refuses and this
serves: pages of any multiple of 16 keys, other head dims than multiples of 8, a v_cache with another
head_dim, sinks, and caches of one byte a number (int8, float8) with scales.
"""

from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

import torch
from torch import Tensor

from flashattn_rocm.arguments import last_dim_contiguous, op_keywords, scale_or_none, window_bounds

__all__ = ["attend_paged", "flash_attn_with_kvcache"]


def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    block_table: Tensor | None = None,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: Sequence[SupportsIndex] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    sinks: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attends to the keys of a cache, after appending k and v to it in place if they are given.

    Inference only: there is no backward. Under ``torch.autocast`` q, k, v and the angles take the cache's
    dtype, float16 for a cache of bytes. Masks and positions count from the end of each sequence: with
    ``n = cache_seqlens + seqlen_new`` keys (less cache_leftpad), query i is level with key
    ``i + n - seqlen_q``, as in :func:`flashattn_rocm.flash_attn_func`. Everything that lies on the device
    stays there: a captured graph can be replayed with other cache_seqlens, tables and tokens.

    Lengths and indices of CPU tensors are checked. On a card, which never reads or writes outside the cache
    whatever they say, they are checked only with FLASHATTN_ROCM_CHECK_INDICES=1, because that waits for the
    card.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim), float16 or bfloat16.
        k_cache: (batch_cache, seqlen_cache, num_heads_k, head_dim), or with block_table
            (num_blocks, page_block_size, num_heads_k, head_dim); any strides with a contiguous last
            dimension. Pages hold a multiple of 16 keys.
        v_cache: likewise.
        k: (batch, seqlen_new, num_heads_k, head_dim), written to the cache from position cache_seqlens on.
        v: likewise.
        rotary_cos: (seqlen_ro, rotary_dim / 2), dtype of q, seqlen_ro >= the cache's capacity: k is turned
            by its positions while it is written, and q too: by cache_seqlens + i if causal or windowed,
            else by cache_seqlens. rotary_dim is a multiple of 16. Ignored without k, as upstream does.
        rotary_sin: likewise.
        cache_seqlens: (batch,), int32, or one int for all: keys in the cache before the call. None: it is
            full.
        cache_batch_idx: (batch,), int32: which sequence of the cache belongs to each of q; not with
            block_table.
        cache_leftpad: (batch,), int32: keys before it do not count; not with block_table.
        block_table: (batch, max_num_blocks_per_seq), int32: the pages of each sequence.
        softmax_scale: None means 1 / sqrt(head_dim).
        causal: see above.
        window_size: (left, right), negative for unbounded.
        softcap: bound on the scores; 0.0 means none.
        rotary_interleaved: pairs are columns (0, 1), (2, 3), ...; else (i, i + rotary_dim / 2).
        alibi_slopes: float32, (num_heads,) or (batch, num_heads).
        num_splits: into how many parts the keys are split, at most 128; 0: as suits the card.
        return_softmax_lse: return (out, softmax_lse).
        sinks: (num_heads,): a score that joins the sum below the fraction of each query of its head.
        k_scale: of a cache of bytes (int8, float8_e4m3fn, float8_e5m2; for float16 queries): float32 of
            k_cache's shape without its last dimension. A key is its numbers times its scale. Appended keys
            are rounded so that 127, 448 or 1.75 stands for the largest number of a head's row, and k_scale is
            written with them. For a float8 cache also one element, which stays as it is: appended keys are
            divided by it, and what is too large then becomes the largest number of the format.
        v_scale: likewise, of v_cache.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim of v_cache), dtype of q; softmax_lse
        (batch, num_heads, seqlen_q), float32, natural logarithm, -inf for a query that sees no key.

    Raises:
        TypeError: a dtype that is not served, unequal dtypes, or a malformed window_size.
        ValueError: wrong shapes, devices or strides, arguments that do not go together, or a number outside
            its range.
        NotImplementedError: an argument requires grad where gradients are recorded.
        RuntimeError: no device, no kernels for it, or a failed launch.
    """
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((q.shape[0],), cache_seqlens, dtype=torch.int32, device=q.device)
    q = last_dim_contiguous(q)
    seqlen_new = 0
    if k is not None:
        q = _append(
            q,
            k_cache,
            v_cache,
            k,
            v,
            rotary_cos,
            rotary_sin,
            cache_seqlens,
            cache_batch_idx,
            block_table,
            rotary_interleaved,
            one_position=not causal and max(window_bounds(window_size)) < 0,
            scales=(k_scale, v_scale),
        )
        seqlen_new = k.shape[1]
    elif v is not None:
        raise ValueError("v is given without k; both are appended to the cache, or none")
    keywords = op_keywords(
        window_size,
        softcap,
        alibi_slopes=alibi_slopes,
        sinks=sinks,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        cache_leftpad=cache_leftpad,
        block_table=block_table,
        k_scale=k_scale,
        v_scale=v_scale,
    )
    out, softmax_lse = torch.ops.flashattn_rocm.decode(
        q,
        k_cache,
        v_cache,
        scale_or_none(softmax_scale),
        bool(causal),
        seqlen_new=seqlen_new,
        num_splits=num_splits,
        **keywords,
    )
    return (out, softmax_lse) if return_softmax_lse else out


def attend_paged(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    seqlens_k: Tensor,
    max_seqlen_q: int,
    block_table: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    num_splits: int = 0,
    **keywords: object,
) -> tuple[Tensor, Tensor]:
    """Packed queries over a paged cache: ``flash_attn_varlen_func`` with block_table.

    Args:
        q: (total_q, num_heads, head_dim).
        k: (num_blocks, page_block_size, num_heads_k, head_dim).
        v: likewise.
        cu_seqlens_q: (batch + 1,), int32.
        seqlens_k: (batch,), int32: keys of each sequence.
        max_seqlen_q: at least the longest sequence of q.
        block_table: (batch, max_num_blocks_per_seq), int32.
        softmax_scale: None means 1 / sqrt(head_dim).
        causal: aligned at the bottom right of each sequence.
        num_splits: as in :func:`flash_attn_with_kvcache`.
        keywords: of :func:`flashattn_rocm.arguments.op_keywords`.

    Returns:
        out (total_q, num_heads, head_dim of v) and softmax_lse (num_heads, total_q).
    """
    return torch.ops.flashattn_rocm.decode(
        q,
        k,
        v,
        softmax_scale,
        causal,
        cache_seqlens=seqlens_k,
        block_table=block_table,
        cu_seqlens_q=cu_seqlens_q,
        max_seqlen_q=max_seqlen_q,
        num_splits=num_splits,
        **keywords,
    )


def _append(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor,
    v: Tensor | None,
    rotary_cos: Tensor | None,
    rotary_sin: Tensor | None,
    cache_seqlens: Tensor | None,
    cache_batch_idx: Tensor | None,
    block_table: Tensor | None,
    rotary_interleaved: bool,
    one_position: bool,
    scales: tuple[Tensor | None, Tensor | None],
) -> Tensor:
    """Writes k and v to the cache; returns q, turned if there are angles."""
    if v is None:
        raise ValueError("If key is supplied, value must also be passed in: k is given, v is None")
    if cache_seqlens is None:
        raise ValueError(
            "If key is supplied, seqlens_k must also be passed in: k is given, cache_seqlens is None"
        )
    turned = torch.ops.flashattn_rocm.append_kv_(
        k_cache,
        v_cache,
        last_dim_contiguous(k),
        last_dim_contiguous(v),
        cache_seqlens,
        q=None if rotary_cos is None else q,
        rotary_cos=rotary_cos,
        rotary_sin=rotary_sin,
        rotary_interleaved=rotary_interleaved,
        q_at_one_position=one_position,
        cache_batch_idx=cache_batch_idx,
        block_table=block_table,
        k_scale=scales[0],
        v_scale=scales[1],
    )
    return q if rotary_cos is None else turned
