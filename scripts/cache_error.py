#!/usr/bin/env python3
"""Prints what each format of a KV cache costs: errors of attention to keys that were appended to it.

Keys, values and queries are normal numbers; errors are against float64 on them before they were rounded.
"""

import argparse

import torch
from rich.console import Console
from rich.table import Table

from flashattn_rocm import flash_attn_with_kvcache
from flashattn_rocm.reference import attention_reference

_FORMATS = {
    "float16": (torch.float16, False),
    "int8, a scale each token and head": (torch.int8, True),
    "float8_e4m3fn, a scale each token and head": (torch.float8_e4m3fn, True),
    "float8_e4m3fn, one scale of 1": (torch.float8_e4m3fn, False),
    "float8_e5m2, a scale each token and head": (torch.float8_e5m2, True),
    "float8_e5m2, one scale of 1": (torch.float8_e5m2, False),
}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seqlen", type=int, default=1000, help="keys (default: 1000)")
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--device", default="cpu", help="cpu: the simulated card (default); cuda: a card")
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    shape = (1, options.seqlen, 8, options.head_dim)
    k, v = (torch.randn(shape, generator=generator).half().to(options.device) for _ in range(2))
    q = torch.randn(1, 8, 32, options.head_dim, generator=generator).half().to(options.device)
    want, _ = attention_reference(q, k, v, causal=True)
    table = Table(title=f"{options.seqlen} keys, head_dim {options.head_dim}", title_justify="left")
    for heading in ("cache", "largest error / largest output", "RMS error / RMS output"):
        table.add_column(heading)
    for name, (dtype, of_rows) in _FORMATS.items():
        error = (_attend(q, k, v, dtype, of_rows).cpu().double() - want).abs()
        rms = (error.square().mean() / want.square().mean()).sqrt()
        table.add_row(name, f"{float(error.max() / want.abs().max()):.2%}", f"{float(rms):.2%}")
    Console(width=110).print(table)


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dtype: torch.dtype, of_rows: bool
) -> torch.Tensor:
    k_cache, v_cache = (torch.empty(x.shape, dtype=dtype, device=x.device) for x in (k, v))
    scales = {}
    if dtype != q.dtype:
        sizes = k.shape[:3] if of_rows else ()
        scales = {name: torch.ones(sizes, device=k.device) for name in ("k_scale", "v_scale")}
    out = flash_attn_with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens=0, causal=True, **scales)
    assert isinstance(out, torch.Tensor)
    return out


if __name__ == "__main__":
    main()
