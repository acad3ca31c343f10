#!/usr/bin/env python3
"""Measures the forward against float64 and prints a table: head dims x causal x sequence lengths.

A row passes when it meets the numerics contract (docs/numerics.md): inf and NaN where the reference has
them, max abs error <= 2 x the error of torch's own fp16 math on the same input + one rounding of the
output, cosine >= 0.9999, log-sum-exp within 1e-3. Exit code 1 when a row fails.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from flashattn_rocm import flash_attn_func
from flashattn_rocm.accuracy import Accuracy, measure_accuracy

SEQLENS = (1, 63, 64, 65, 127, 300, 1000)
UNEQUAL_SEQLENS = ((1, 300), (63, 127), (127, 64), (65, 1000), (300, 65), (1000, 127))


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of the table: q (1, seqlen_q, heads, head_dim), k and v (1, seqlen_k, heads, head_dim)."""

    head_dim: int
    causal: bool
    seqlen_q: int
    seqlen_k: int
    heads: int


def main() -> int:
    """Runs the command line; returns the exit code."""
    options = _parse_arguments()
    console = Console(stderr=options.json)
    cases = list(_cases(options))
    rows: list[tuple[Case, Accuracy]] = []
    with Progress(console=console, transient=True) as progress:
        for case in progress.track(cases, description="measuring"):
            rows.append((case, _measure(case, options.device, options.seed)))
    failed = sum(not accuracy.passed for _, accuracy in rows)
    if options.json:
        print(json.dumps([_as_dict(case, accuracy) for case, accuracy in rows], indent=1))
    else:
        _console(console).print(_table(rows, options.device))
        console.print(f"{len(rows) - failed} of {len(rows)} rows meet the numerics contract")
    return 1 if failed else 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--head-dim", type=int, nargs="+", default=[32, 64, 128], metavar="D")
    parser.add_argument("--heads", type=int, default=1, help="of q, k and v (default: 1)")
    parser.add_argument(
        "--seqlen", type=int, nargs="+", default=list(SEQLENS), help="equal lengths of q and k"
    )
    parser.add_argument("--device", default="cpu", help="cpu: the simulated card (default); cuda: a card")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON in place of the table")
    return parser.parse_args()


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    pairs = [(seqlen, seqlen) for seqlen in options.seqlen] + list(UNEQUAL_SEQLENS)
    for head_dim in options.head_dim:
        for causal in (False, True):
            for seqlen_q, seqlen_k in pairs:
                yield Case(head_dim, causal, seqlen_q, seqlen_k, options.heads)


def _measure(case: Case, device: str, seed: int) -> Accuracy:
    generator = torch.Generator().manual_seed(seed)

    def randn(seqlen: int) -> torch.Tensor:
        return torch.randn(1, seqlen, case.heads, case.head_dim, generator=generator).half().to(device)

    q, k, v = randn(case.seqlen_q), randn(case.seqlen_k), randn(case.seqlen_k)
    out, lse, _ = flash_attn_func(q, k, v, causal=case.causal, return_attn_probs=True)
    return measure_accuracy(q, k, v, out, lse, causal=case.causal)


def _as_dict(case: Case, accuracy: Accuracy) -> dict[str, Any]:
    return {
        **dataclasses.asdict(case),
        **dataclasses.asdict(accuracy),
        "allowed_error": accuracy.allowed_error,
        "passed": accuracy.passed,
    }


def _console(console: Console) -> Console:
    return console if console.is_terminal else Console(width=120)


def _table(rows: list[tuple[Case, Accuracy]], device: str) -> Table:
    where = "on the simulated card" if device == "cpu" else f"on {device}"
    table = Table(title=f"fp16 forward {where} against float64", title_justify="left")
    headings = (
        *("D", "causal", "q", "k", "max abs error", "torch fp16 math", "ratio", "allowed", "cosine"),
        *("LSE error", ""),
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for case, accuracy in rows:
        table.add_row(
            str(case.head_dim),
            "yes" if case.causal else "no",
            str(case.seqlen_q),
            str(case.seqlen_k),
            f"{accuracy.max_error:.2e}",
            f"{accuracy.math_error:.2e}",
            _ratio(accuracy),
            f"{accuracy.allowed_error:.2e}",
            f"{accuracy.cosine:.7f}",
            f"{accuracy.lse_error:.1e}",
            "pass" if accuracy.passed else "FAIL: " + "; ".join(accuracy.violations()),
        )
    return table


def _ratio(accuracy: Accuracy) -> str:
    """Ours over torch's error; torch's math can be exact where few keys are visible."""
    if accuracy.math_error:
        return f"{accuracy.max_error / accuracy.math_error:.2f}"
    return "inf" if accuracy.max_error else "both exact"


if __name__ == "__main__":
    sys.exit(main())
