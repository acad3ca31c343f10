"""The decode benchmark: one token of each sequence against a long KV cache, in unique KV bytes a second."""

import csv
import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.table import Table

from flashattn_rocm.benchmarks.device import Device
from flashattn_rocm.benchmarks.result import Result

BYTE_FORMATS = {"int8": torch.int8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
TITLE = "Decode: flash_attn_with_kvcache, fp16 queries, one token a sequence"


@dataclass(frozen=True)
class DecodeShape:
    """A step of decoding.

    Attributes:
        batch: sequences.
        seqlen_k: keys of each, or of the longest.
        heads_kv: of keys and values.
        ratio: query heads of a key head.
        head_dim: elements.
        page_size: keys of a page; 0: a dense cache.
        kv_format: "fp16", or a key of BYTE_FORMATS.
        seqlen_prefix: keys before those, which the sequences share and which lie in memory once.
        latent: multi-head latent attention, whose 576 columns of keys are the 512 of values too.
        lengths: keys of each sequence, in pages; (): all have seqlen_k.
    """

    batch: int
    seqlen_k: int
    heads_kv: int
    ratio: int
    head_dim: int
    page_size: int = 0
    kv_format: str = "fp16"
    seqlen_prefix: int = 0
    latent: bool = False
    lengths: tuple[int, ...] = ()

    @property
    def keys(self) -> list[int]:
        """Of each sequence, without the prefix."""
        return list(self.lengths) or [self.seqlen_k] * self.batch

    @property
    def columns(self) -> int:
        """Of a key and its value that are multiplied."""
        return 2 * self.head_dim - (64 if self.latent else 0)

    @property
    def kv_bytes(self) -> int:
        """Of the keys and values of all sequences, and of the scales of bytes."""
        row = self.head_dim + 4 if self.kv_format in BYTE_FORMATS else 2 * self.head_dim
        rows = (sum(self.keys) + self.seqlen_prefix) * self.heads_kv
        return rows * row if self.latent else 2 * rows * row


@dataclass(frozen=True)
class DecodeRow(Result):
    """A row; the fields are the keys of the JSON.

    Attributes:
        page_size: keys of a page; 0: a dense cache.
        kv_format: "fp16", or a key of BYTE_FORMATS.
        kv_bytes: of the keys and values; each counted once, however often it is read.
        gbps_unique_kv: kv_bytes over the time, 1e9 bytes a second.
        seqlen_prefix: keys that the sequences share, before the seqlen_k of their own.
        lengths: keys of each sequence where they differ.
    """

    page_size: int = 0
    kv_format: str = "fp16"
    kv_bytes: int = 0
    gbps_unique_kv: float = 0.0
    seqlen_prefix: int = 0
    lengths: tuple[int, ...] = ()


def decode_shapes(quick: bool = False) -> list[DecodeShape]:
    """Ratios 1 to 8, D128 and D256, batch 1 and 8; pages; bytes; prefixes; latents; unequal lengths."""
    if quick:
        return [DecodeShape(1, 8192, 8, 4, 128), DecodeShape(1, 8192, 8, 4, 128, page_size=16)]
    shapes = [
        DecodeShape(batch, seqlen_k, 8 // batch, ratio, head_dim)
        for head_dim, batch, seqlen_k, ratio in itertools.product(
            (128, 256), (1, 8), (32768, 131072), (1, 4, 6, 8)
        )
    ]
    paged = [DecodeShape(1, 32768, 8, ratio, dim, 16) for dim in (128, 256) for ratio in (1, 4, 6, 8)]
    of_bytes = [
        DecodeShape(1, 131072, 8, ratio, 128, kv_format=name) for name in BYTE_FORMATS for ratio in (1, 4, 8)
    ]
    prefix = [
        shape
        for batch in (8, 16, 32)
        for shape in (
            DecodeShape(batch, 128, 8, 4, 128, seqlen_prefix=4096),
            DecodeShape(batch, 4224, 8, 4, 128),
        )
    ]
    latent = [
        DecodeShape(batch, 8192, 1, heads, 576, 64, latent=True) for batch in (1, 8) for heads in (16, 128)
    ]
    one_long, halves = (131072, *[1024] * 7), (32768, 16384, 8192, 4096, 2048, 1024, 512, 0)
    unsplit = (8192, *[512] * 7)  # if all were as long as the first
    ragged = [
        DecodeShape(8, lengths[0], heads_kv, 4, 128, 16, lengths=lengths)
        for heads_kv in (1, 8)
        for lengths in (one_long, halves, unsplit)
    ]
    return shapes + paged + of_bytes + prefix + latent + ragged


def decode_step(shape: DecodeShape, torch_device: str | torch.device) -> Callable[[], None]:
    """One step on a cache of zeros, to be called as often as one likes."""
    from flashattn_rocm.cascade import flash_attn_with_shared_prefix
    from flashattn_rocm.kvcache import flash_attn_with_kvcache
    from flashattn_rocm.mla import flash_mla_with_kvcache

    where = {"device": torch_device}
    heads = shape.heads_kv * shape.ratio
    q = torch.randn(shape.batch, 1, heads, shape.head_dim).half().to(**where)
    lengths = torch.tensor(shape.keys, dtype=torch.int32, **where)
    table = None
    rows: tuple[int, ...] = (shape.batch, shape.seqlen_k)
    if shape.page_size:
        table, pages = _pages(shape)
        table = table.to(**where)
        rows = (pages, shape.page_size)
    rows = (*rows, shape.heads_kv)
    dtype = BYTE_FORMATS.get(shape.kv_format, torch.half)
    k, v = (torch.zeros(*rows, shape.head_dim, dtype=dtype, **where) for _ in range(2))
    scales = {name: torch.zeros(*rows, **where) for name in ("k_scale", "v_scale") if dtype != q.dtype}
    k_prefix, v_prefix = (
        torch.zeros(shape.seqlen_prefix, *k.shape[2:], dtype=dtype, **where) for _ in range(2)
    )

    def step() -> None:
        options = {"cache_seqlens": lengths, "block_table": table, "causal": True, **scales}
        if shape.latent:
            flash_mla_with_kvcache(q, k, table, lengths, causal=True)
        elif shape.seqlen_prefix:
            flash_attn_with_shared_prefix(q, k_prefix, v_prefix, k, v, **options)
        else:
            flash_attn_with_kvcache(q, k, v, **options)

    return step


def run_decode(device: Device, shape: DecodeShape) -> DecodeRow:
    """Measures one step."""
    measured = device.measure(decode_step(shape, device.torch_device))
    heads = shape.heads_kv * shape.ratio
    flop = 2 * (shape.batch * shape.seqlen_prefix + sum(shape.keys)) * heads * shape.columns
    return DecodeRow(
        bench="decode",
        impl="flashattn_rocm",
        backend=device.backend,
        dtype="fp16",
        batch=shape.batch,
        seqlen_q=1,
        seqlen_k=shape.seqlen_k,
        heads_q=heads,
        heads_kv=shape.heads_kv,
        head_dim=shape.head_dim,
        causal=True,
        cycles=measured.cycles,
        ms=measured.ms,
        tflops=flop / (measured.ms * 1e-3) / 1e12,
        valu_busy=measured.valu_busy,
        hbm_read_bytes=measured.hbm_read_bytes,
        hbm_write_bytes=measured.hbm_write_bytes,
        floor_bytes=shape.kv_bytes,
        tile=measured.kernel or "",
        page_size=shape.page_size,
        kv_format=shape.kv_format,
        kv_bytes=shape.kv_bytes,
        gbps_unique_kv=shape.kv_bytes / (measured.ms * 1e-3) / 1e9,
        seqlen_prefix=shape.seqlen_prefix,
        lengths=shape.lengths,
    )


def _pages(shape: DecodeShape) -> tuple[torch.Tensor, int]:
    """The block table (batch, pages of the longest), int32, pages in random order; how many pages."""
    counts = [-(-keys // shape.page_size) for keys in shape.keys]
    table = torch.zeros(shape.batch, max(counts), dtype=torch.int32)
    for row, pages in zip(table, torch.randperm(sum(counts)).int().split(counts), strict=True):
        row[: len(pages)] = pages
    return table, sum(counts)


def decode_table(rows: Sequence[DecodeRow]) -> Table:
    """For the terminal."""
    table = Table(title=TITLE, title_justify="left")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("shape", "kernel") else "right", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def decode_markdown(rows: Sequence[DecodeRow]) -> str:
    """The same table in Markdown."""
    lines = [f"## {TITLE}", "", "| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_decode_json(rows: Sequence[DecodeRow], path: Path) -> None:
    """A list, one object a row."""
    path.write_text(json.dumps([row.to_dict() for row in rows], indent=1) + "\n")


def write_decode_csv(rows: Sequence[DecodeRow], path: Path) -> None:
    """The keys of the JSON as columns."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(DecodeRow)])
        writer.writeheader()
        writer.writerows(row.to_dict() for row in rows)


_COLUMNS = ("shape", "us", "GB/s of KV", "HBM read / KV", "VALU busy %", "kernel")


def _cells(row: DecodeRow) -> tuple[str, ...]:
    pages = f" pages of {row.page_size}" if row.page_size else ""
    pages += f" {row.kv_format}" if row.kv_format != "fp16" else ""
    pages += f" behind a shared {row.seqlen_prefix}" if row.seqlen_prefix else ""
    read = "" if row.hbm_read_bytes is None else f"{row.hbm_read_bytes / row.kv_bytes:.3f}"
    keys = ", ".join(map(str, row.lengths)) or row.seqlen_k
    return (
        f"B{row.batch} H{row.heads_q}/{row.heads_kv} D{row.head_dim} S {keys}{pages}",
        f"{1e3 * row.ms:.1f}",
        f"{row.gbps_unique_kv:.0f}",
        read,
        "" if row.valu_busy is None else f"{row.valu_busy:.0f}",
        row.tile,
    )
