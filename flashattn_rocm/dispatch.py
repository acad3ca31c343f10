"""Which kernel serves a forward, why, and how to say otherwise."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

import flashattn_rocm._C as _C
from flashattn_rocm._extension import backend_devices

__all__ = ["DispatchChoice", "add_dispatch_command", "explain_dispatch", "use_tile"]

_TILE_VARIABLE = "FLASHATTN_ROCM_FWD_TILE"
_ELEMENTS = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


@dataclass(frozen=True)
class DispatchChoice:
    """A kernel that could serve a forward.

    Attributes:
        kernel: its name, as use_tile takes it.
        block_m: query rows of a workgroup.
        block_n: keys of a step.
        workgroups: of the launch.
        rounds: how often they fill the card.
        mean_steps: steps of a workgroup.
        workgroups_per_cu: that fit a compute unit.
        fixed: clocks of a workgroup beside its steps.
        step: clocks of a step, alone on the compute unit.
        step_full: the same with workgroups_per_cu of them.
        estimated_clocks: of the launch; the least wins.
    """

    kernel: str
    block_m: int
    block_n: int
    workgroups: int
    rounds: float
    mean_steps: float
    workgroups_per_cu: int
    fixed: int
    step: int
    step_full: int
    estimated_clocks: float


def explain_dispatch(
    *,
    head_dim: int,
    seqlen_q: int,
    seqlen_k: int | None = None,
    heads: int,
    heads_kv: int | None = None,
    batch: int = 1,
    causal: bool = False,
    dtype: torch.dtype = torch.float16,
    aligned: bool = True,
    changes_scores: bool = False,
    packed: bool = False,
    arch: str | None = None,
    compute_units: int | None = None,
) -> list[DispatchChoice]:
    """Ranks the kernels for a forward as the dispatcher does; runs nothing.

    Args:
        head_dim: columns of q, k and v.
        seqlen_q: queries.
        seqlen_k: keys; None: as seqlen_q.
        heads: of q.
        heads_kv: of k and v; None: as heads.
        batch: sequences.
        causal: as in flash_attn_func.
        dtype: float16, bfloat16 or float32.
        aligned: every tensor allows 16-byte access: addresses and strides are multiples of 4 bytes,
            head_dim is one of 8.
        changes_scores: softcap, ALiBi, a bias or a mask is given.
        packed: lengths come in cu_seqlens, so the host knows no more than the longest, which seqlen_q and
            seqlen_k are; such query blocks are not cut along the keys.
        arch: of the card, whose measured clocks count; None: the first device's.
        compute_units: of the card; None: the first device's.

    Returns:
        The kernels, the quickest by estimate first. That one is taken, unless use_tile or
        FLASHATTN_ROCM_FWD_TILE names another one of them.

    Raises:
        RuntimeError: there is no device, and arch or compute_units are not given.
        ValueError: a size is not positive, heads_kv does not divide heads, the dtype is another, or no
            kernel of this build serves the head_dim.
    """
    seqlen_k, heads_kv = seqlen_k or seqlen_q, heads_kv or heads
    sizes = {"head_dim": head_dim, "seqlen_q": seqlen_q, "seqlen_k": seqlen_k, "heads": heads}
    sizes |= {"heads_kv": heads_kv, "batch": batch}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} must be at least 1")
    if dtype not in _ELEMENTS:
        raise ValueError(f"dtype={dtype} must be torch.float16, torch.bfloat16 or torch.float32")
    if heads % heads_kv != 0:
        raise ValueError(f"heads_kv={heads_kv} must divide heads={heads}")
    if arch is None or compute_units is None:
        device = backend_devices()[0]
        arch = arch or device["arch"].partition(":")[0]
        compute_units = compute_units or device["compute_units"]
    try:
        ranking = _C.rank_fwd(
            *(batch, seqlen_q, seqlen_k, heads, heads_kv, head_dim, causal),
            element=_ELEMENTS[dtype],
            chunks=aligned,
            changes_scores=changes_scores,
            packed=packed,
            compute_units=compute_units,
            arch=arch,
        )
    except IndexError as error:
        raise ValueError(str(error)) from error
    return [
        DispatchChoice(
            kernel=row["name"],
            block_m=row["block_m"],
            block_n=row["block_n"],
            workgroups=row["workgroups"],
            rounds=row["workgroups"] / (compute_units * row["workgroups_per_cu"]),
            mean_steps=row["mean_steps"],
            workgroups_per_cu=row["workgroups_per_cu"],
            **row["clocks"],
            estimated_clocks=row["estimated_clocks"],
        )
        for row in ranking
    ]


@contextmanager
def use_tile(kernel: str) -> Iterator[None]:
    """Every forward that the kernel can serve uses it inside the block, in all threads.

    Blocks may be nested; the innermost counts. It goes before FLASHATTN_ROCM_FWD_TILE.

    Args:
        kernel: a name from explain_dispatch or `flashattn-rocm info`.

    Raises:
        ValueError: this build has no such kernel.
    """
    previous = _C.set_fwd_tile(kernel)
    try:
        yield
    finally:
        _C.set_fwd_tile(previous)


def add_dispatch_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds ``dispatch``; it sets ``run``, a function of the options."""
    parser = commands.add_parser(
        "dispatch", help="which kernel serves a forward, and why", description=__doc__
    )
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--seqlen-q", type=int, default=4096)
    parser.add_argument("--seqlen-k", type=int, help="default: as --seqlen-q")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--heads-kv", type=int, help="divides --heads; default: as --heads")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--causal", action="store_true")
    dtype = parser.add_mutually_exclusive_group()
    dtype.add_argument(
        "--bf16", dest="dtype", action="store_const", const=torch.bfloat16, help="default: fp16"
    )
    dtype.add_argument("--fp32", dest="dtype", action="store_const", const=torch.float32)
    parser.add_argument("--changes-scores", action="store_true", help="softcap, ALiBi, a bias or a mask")
    parser.add_argument("--packed", action="store_true", help="lengths come in cu_seqlens")
    parser.add_argument("--unaligned", action="store_true", help="tensors that 16-byte access does not fit")
    parser.add_argument("--arch", help="of the card; default: that of the first device")
    parser.add_argument("--compute-units", type=int, help="of the card; default: those of the first device")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    ranking = explain_dispatch(
        head_dim=options.head_dim,
        seqlen_q=options.seqlen_q,
        seqlen_k=options.seqlen_k,
        heads=options.heads,
        heads_kv=options.heads_kv,
        batch=options.batch,
        causal=options.causal,
        dtype=options.dtype or torch.float16,
        aligned=not options.unaligned,
        changes_scores=options.changes_scores,
        packed=options.packed,
        arch=options.arch,
        compute_units=options.compute_units,
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(_table(ranking))
    console.print(_reason(ranking), soft_wrap=True, highlight=False)
    return 0


def _table(ranking: list[DispatchChoice]) -> Table:
    table = Table(title="Kernels by estimated clocks", title_justify="left")
    table.add_column("kernel", no_wrap=True)
    headings = ("workgroups", "a CU", "rounds", "steps", "fixed", "step", "step, CU full", "estimate")
    for heading in headings:
        table.add_column(heading, justify="right")
    for choice in ranking:
        table.add_row(
            choice.kernel,
            str(choice.workgroups),
            str(choice.workgroups_per_cu),
            f"{choice.rounds:.2f}",
            f"{choice.mean_steps:.1f}",
            *(f"{clocks:,}" for clocks in (choice.fixed, choice.step, choice.step_full)),
            f"{choice.estimated_clocks:,.0f}",
        )
    return table


def _reason(ranking: list[DispatchChoice]) -> str:
    best, *others = ranking
    asked = os.environ.get(_TILE_VARIABLE)
    if asked and any(choice.kernel == asked for choice in ranking):
        return f"{asked} is taken: {_TILE_VARIABLE} asks for it."
    if not others:
        return f"{best.kernel} is taken: it is the only one for this head_dim and alignment."
    second = others[0]
    ratio = second.estimated_clocks / best.estimated_clocks
    return (
        f"{best.kernel} is taken: {best.workgroups} workgroups of {best.block_m} rows fill the card "
        f"{best.rounds:.2f} times; by estimate {ratio:.2f} x quicker than {second.kernel}, whose "
        f"{second.workgroups} fill it {second.rounds:.2f} times."
    )
