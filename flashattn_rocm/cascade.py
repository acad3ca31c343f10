"""Attention of a batch whose sequences begin alike: the shared keys are read once for all of them."""

from typing import NamedTuple, SupportsFloat

import torch
from torch import Tensor

from flashattn_rocm.interface import flash_attn_func
from flashattn_rocm.kvcache import flash_attn_with_kvcache
from flashattn_rocm.merge import merge_states

__all__ = ["flash_attn_with_shared_prefix"]

# Of a key head, from which on the forward is quicker over a dense prefix than decode, which reads keys from
# L2 again for every 8 rows: of 32 rows and 4096 keys (8 key heads, D128) it takes 73 us for 93, simulated.
_ROWS_OF_FORWARD = 32


def flash_attn_with_shared_prefix(
    q: Tensor,
    k_prefix: Tensor,
    v_prefix: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    *,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    block_table: Tensor | None = None,
    prefix_block_table: Tensor | None = None,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    softcap: float = 0.0,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    sinks: Tensor | None = None,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attends to a prefix that all sequences share, then to the keys that each has in a cache behind it.

    Cascade inference (Ye et al. 2024), Hydragen (Juravsky et al. 2024): queries of all sequences are rows of
    one attention over the prefix, so each of its keys comes from memory once for the batch. The two results
    are joined by :func:`flashattn_rocm.merge_states`. Inference only, like
    :func:`flashattn_rocm.flash_attn_with_kvcache`, of which this takes what does not depend on how far a key
    is: no windows, no ALiBi. Queries and keys have been turned by their positions already.

    Args:
        q: (batch, seqlen_q, num_heads, head_dim), float16 or bfloat16.
        k_prefix: (seqlen_prefix, num_heads_k, head_dim), or with prefix_block_table
            (num_blocks, page_block_size, num_heads_k, head_dim), which may be k_cache itself.
        v_prefix: likewise.
        k_cache: keys behind the prefix, as in flash_attn_with_kvcache, without those of the prefix.
        v_cache: likewise.
        k: (batch, seqlen_new, num_heads_k, head_dim), appended to k_cache.
        v: likewise.
        cache_seqlens: (batch,), int32, or one int for all: keys in k_cache before the call.
        cache_batch_idx: as in flash_attn_with_kvcache.
        block_table: (batch, max_num_blocks_per_seq), int32: the pages of each sequence behind the prefix.
        prefix_block_table: (num_prefix_blocks,), int32: the pages of the prefix, all of them full.
        softmax_scale: None means 1 / sqrt(head_dim).
        causal: queries are the last tokens of their sequences and see what comes before them: the whole
            prefix, and of k_cache as in flash_attn_with_kvcache. There must be seqlen_q keys in it at least,
            k included; for lengths on the CPU this is checked.
        softcap: bound on the scores; 0.0 means none.
        num_splits: as in flash_attn_with_kvcache, for both.
        return_softmax_lse: return (out, softmax_lse).
        sinks: (num_heads,): a score that joins the sum below the fraction of each query of its head.
        k_scale: of caches of bytes, as in flash_attn_with_kvcache: of k_cache, and of a prefix of bytes too,
            which then lies in the pages of the same cache.
        v_scale: likewise.

    Returns:
        out (batch, seqlen_q, num_heads, head_dim of v_cache), dtype of q; softmax_lse
        (batch, num_heads, seqlen_q), float32, natural logarithm.

    Raises:
        NotImplementedError, RuntimeError, TypeError, ValueError: as flash_attn_with_kvcache.
    """
    batch, seqlen_q = q.shape[:2]
    if causal:
        _check_own_keys(cache_seqlens, 0 if k is None else k.shape[1], seqlen_q)
    rank = 3 if prefix_block_table is None else 4
    for name, prefix in (("k_prefix", k_prefix), ("v_prefix", v_prefix)):
        if prefix.dim() != rank:
            raise ValueError(f"{name} must have {rank} dimensions; its shape is {tuple(prefix.shape)}")
    # Before anything is written: what is wrong with the prefix is told while k_cache is as it was.
    scales = (k_scale, v_scale) if k_prefix.dtype.itemsize == 1 else (None, None)
    if prefix_block_table is not None:
        shared_keys = _Prefix(k_prefix, v_prefix, prefix_block_table[None], *scales)
    else:
        shared_keys = _Prefix(k_prefix[None], v_prefix[None], None, *scales)
    shared, shared_lse = shared_keys.attend(q.flatten(0, 1), softmax_scale, softcap, num_splits)
    own, own_lse = flash_attn_with_kvcache(
        q,
        k_cache,
        v_cache,
        k,
        v,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        block_table=block_table,
        softmax_scale=softmax_scale,
        causal=causal,
        softcap=softcap,
        num_splits=num_splits,
        return_softmax_lse=True,
        sinks=sinks,
        k_scale=k_scale,
        v_scale=v_scale,
    )
    # Log-sum-exps (num_heads, batch * seqlen_q) are read in place by their strides.
    shared_lse = shared_lse.unflatten(-1, (batch, seqlen_q)).transpose(0, 1)
    out, lse = merge_states(shared.unflatten(0, (batch, seqlen_q)), shared_lse, own, own_lse)
    return (out, lse) if return_softmax_lse else out


class _Prefix(NamedTuple):
    """One sequence of keys and values, dense or in the pages of a table of one row."""

    k: Tensor
    v: Tensor
    block_table: Tensor | None
    k_scale: Tensor | None
    v_scale: Tensor | None

    def attend(
        self, rows: Tensor, softmax_scale: SupportsFloat | None, softcap: float, num_splits: int
    ) -> tuple[Tensor, Tensor]:
        """Of rows (n, num_heads, head_dim); returns (n, num_heads, head_dim_v) and (num_heads, n)."""
        n, ratio = rows.shape[0], rows.shape[1] // max(self.k.shape[2], 1)
        if self.block_table is None and self.k_scale is None and n * ratio >= _ROWS_OF_FORWARD:
            # Query heads of a key head become rows, so that a block of them reads it once.
            packed = rows.unflatten(1, (-1, ratio)).transpose(1, 2).flatten(0, 1)[None]
            out, lse, _ = flash_attn_func(
                packed, self.k, self.v, softmax_scale=softmax_scale, softcap=softcap, return_attn_probs=True
            )
            out = out[0].unflatten(0, (n, ratio)).transpose(1, 2).flatten(1, 2)
            return out, lse[0].unflatten(1, (n, ratio)).transpose(1, 2).flatten(0, 1)
        out, lse = flash_attn_with_kvcache(
            rows[None],
            self.k,
            self.v,
            block_table=self.block_table,
            softmax_scale=softmax_scale,
            softcap=softcap,
            num_splits=num_splits,
            return_softmax_lse=True,
            k_scale=self.k_scale,
            v_scale=self.v_scale,
        )
        return out[0], lse[0]


def _check_own_keys(cache_seqlens: int | Tensor | None, seqlen_new: int, seqlen_q: int) -> None:
    """Refuses causal queries that would lie in the prefix, of which each sees all keys."""
    if cache_seqlens is None or torch.compiler.is_compiling():
        return
    if isinstance(cache_seqlens, Tensor):
        if not cache_seqlens.is_cpu or cache_seqlens.numel() == 0:
            return
        cache_seqlens = int(cache_seqlens.min())
    if cache_seqlens + seqlen_new < seqlen_q:
        raise ValueError(
            f"with causal=True each sequence must have its {seqlen_q} queries' own keys in k_cache: "
            f"one has {cache_seqlens} there and {seqlen_new} new ones"
        )
