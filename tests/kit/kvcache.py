"""KV caches full of NaN beside their keys, and what attention over them must give."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from flashattn_rocm import flash_attn_with_kvcache
from tests.kit.attention import attention


def randn(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> Tensor:
    """Standard normal numbers that depend on shape and seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@dataclass
class Cache:
    """A cache whose unused rows are NaN.

    Attributes:
        k: (items, keys, heads_kv, head_dim), or (pages, page_size, heads_kv, head_dim).
        v: likewise.
        seqlens: keys of each sequence, padding included.
        leftpad: of each sequence, or None.
        batch_idx: or None.
        block_table: or None.
    """

    k: Tensor
    v: Tensor
    seqlens: list[int]
    leftpad: list[int] | None = None
    batch_idx: list[int] | None = None
    block_table: Tensor | None = None

    @staticmethod
    def of(seqlens: list[int], page_size: int | None, **options: Any) -> "Cache":
        """Dense, or with pages."""
        return Cache.paged(seqlens, page_size, **options) if page_size else Cache.dense(seqlens, **options)

    @staticmethod
    def dense(
        seqlens: list[int],
        heads_kv: int = 2,
        head_dim: int = 64,
        head_dim_v: int = 0,
        dtype: torch.dtype = torch.float16,
        leftpad: list[int] | None = None,
        batch_idx: list[int] | None = None,
        items: int = 0,
        spare: int = 5,
        seed: int = 1,
    ) -> "Cache":
        """Room for `spare` keys after the longest sequence."""
        shape = (items or len(seqlens), max(seqlens) + spare, heads_kv)
        cache = Cache(
            torch.full((*shape, head_dim), torch.nan, dtype=dtype),
            torch.full((*shape, head_dim_v or head_dim), torch.nan, dtype=dtype),
            list(seqlens),
            leftpad,
            batch_idx,
        )
        for b, n in enumerate(seqlens):
            item, pad = (batch_idx or range(len(seqlens)))[b], (leftpad or [0] * len(seqlens))[b]
            for x in (cache.k, cache.v):
                seed += 1
                x[item, pad:n] = randn(max(n - pad, 0), heads_kv, x.shape[-1], dtype=dtype, seed=seed)
        return cache

    @staticmethod
    def paged(
        seqlens: list[int],
        page_size: int = 16,
        heads_kv: int = 2,
        head_dim: int = 64,
        dtype: torch.dtype = torch.float16,
        spare_columns: int = 1,
        seed: int = 1,
    ) -> "Cache":
        """Pages in random order; entries of the table behind a sequence are out of range."""
        needed = [-(-n // page_size) for n in seqlens]
        pages = sum(needed) + 2 * len(seqlens) + 2
        order = torch.randperm(pages, generator=torch.Generator().manual_seed(seed)).tolist()
        table = torch.full((len(seqlens), max(needed) + spare_columns), 2**30, dtype=torch.int32)
        shape = (pages, page_size, heads_kv, head_dim)
        k, v = (torch.full(shape, torch.nan, dtype=dtype) for _ in range(2))
        for b, n in enumerate(seqlens):
            table[b, : needed[b]] = torch.tensor([order.pop() for _ in range(needed[b])], dtype=torch.int32)
            for x in (k, v):
                seed += 1
                rows = randn(n, heads_kv, head_dim, dtype=dtype, seed=seed)
                for page in range(needed[b]):
                    part = rows[page * page_size : (page + 1) * page_size]
                    x[table[b, page], : len(part)] = part
        return Cache(k, v, list(seqlens), block_table=table)

    @property
    def indices(self) -> dict[str, Tensor]:
        """The arguments that describe it."""
        given = {
            "cache_seqlens": torch.tensor(self.seqlens, dtype=torch.int32),
            "cache_leftpad": None if self.leftpad is None else torch.tensor(self.leftpad, dtype=torch.int32),
            "cache_batch_idx": None
            if self.batch_idx is None
            else torch.tensor(self.batch_idx, dtype=torch.int32),
            "block_table": self.block_table,
        }
        return {name: value for name, value in given.items() if value is not None}

    def rows(self, b: int) -> tuple[Tensor, Tensor]:
        """Keys and values that sequence b sees, each (n, heads_kv, head_dim)."""
        n = self.seqlens[b]
        if self.block_table is not None:
            page = self.k.shape[1]
            used = self.block_table[b, : -(-n // page)].long()
            return tuple(x[used].flatten(0, 1)[:n] for x in (self.k, self.v))
        item = b if self.batch_idx is None else self.batch_idx[b]
        pad = 0 if self.leftpad is None else self.leftpad[b]
        return tuple(x[item, pad:n] for x in (self.k, self.v))


def assert_close_to_reference(
    q: Tensor, rows: list[tuple[Tensor, Tensor]], out: Tensor, lse: Tensor, **options: Any
) -> None:
    """The contract of docs/numerics.md, with the tolerance taken over the whole batch.

    Args:
        q: (batch, seqlen_q, heads, head_dim).
        rows: keys and values of each sequence.
        out: what the op gave; lse likewise.
        options: of flash_attn_with_kvcache.
    """
    options.pop("num_splits", None)
    left, right = options.pop("window_size", (-1, -1))
    slopes = options.pop("alibi_slopes", None)
    options |= {"window_left": left, "window_right": right}
    errors, allowed, roundings = [0.0], [0.0], [0.0]
    for b, (k, v) in enumerate(rows):
        own = None if slopes is None else slopes if slopes.dim() == 1 else slopes[b]
        arguments = (q[b : b + 1], k[None], v[None])
        want = attention(*arguments, alibi_slopes=own, **options)
        math = attention(*arguments, alibi_slopes=own, **options, precision=q.dtype)
        assert out[b].isfinite().all()
        if want.out.numel():
            errors.append(float((out[b : b + 1].double() - want.out).abs().max()))
            allowed.append(float((math.out.double() - want.out).abs().nan_to_num().max()))
            roundings.append(torch.finfo(q.dtype).eps / 2 * float(want.out.abs().max()))
        assert lse[b : b + 1].isinf().equal(want.lse.isinf())
        finite = want.lse.isfinite()
        assert (
            (lse[b : b + 1].double() - want.lse)[finite].abs() < 1e-3 + 1e-6 * want.lse[finite].abs()
        ).all()
    limit = 2 * max(allowed) + max(roundings)
    assert max(errors) <= limit, f"max abs error {max(errors):.3e} > {limit:.3e}"


def assert_decodes(q: Tensor, cache: Cache, **options: Any) -> tuple[Tensor, Tensor]:
    """Runs flash_attn_with_kvcache and checks it; returns (out, log-sum-exp)."""
    out, lse = flash_attn_with_kvcache(
        q, cache.k, cache.v, **cache.indices, return_softmax_lse=True, **options
    )
    assert out.dtype == q.dtype
    assert out.shape == (*q.shape[:3], cache.v.shape[-1])
    rows = [cache.rows(b) for b in range(len(cache.seqlens))]
    assert_close_to_reference(q, rows, out, lse, **options)
    return out, lse
