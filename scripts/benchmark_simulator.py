#!/usr/bin/env python3
"""How fast the simulator executes: wave instructions a second of one host core, on the forward kernel.

One wave instruction is one instruction for a wave of 64 lanes. The rate is taken over CPU time of the whole
process (all threads), so that other work on the machine counts little; it is a figure of the host, not of the
simulated card.
"""

import argparse
import json
import statistics
import time
from dataclasses import asdict, dataclass

import torch
from rich.console import Console
from rich.table import Table

from flashattn_rocm import flash_attn_func, simulated_instructions


@dataclass(frozen=True)
class Speed:
    """Rates of one kernel, in millions of wave instructions a second and core."""

    head_dim: int
    causal: bool
    seqlen: int
    heads: int
    wave_instructions: int  # of one run
    worst: float
    median: float
    best: float


def measure(head_dim: int, causal: bool, seqlen: int, heads: int, runs: int) -> Speed:
    """Runs the forward `runs` times after a warm-up, which loads and decodes the kernels."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, seqlen, heads, head_dim, generator=generator).half()
    flash_attn_func(q[:, :1], k, v, causal=causal)
    rates = []
    for _ in range(runs):
        instructions, started = simulated_instructions(), time.process_time()
        flash_attn_func(q, k, v, causal=causal)
        executed = simulated_instructions() - instructions
        rates.append(executed / (time.process_time() - started) / 1e6)
    return Speed(head_dim, causal, seqlen, heads, executed, min(rates), statistics.median(rates), max(rates))


def print_table(speeds: list[Speed]) -> None:
    """Prints one row for each kernel."""
    table = Table(title="Simulator: million wave instructions a second and core")
    for column in ("head_dim", "causal", "seqlen", "heads", "wave instructions", "worst", "median", "best"):
        table.add_column(column, justify="right")
    for s in speeds:
        rates = (f"{rate:.1f}" for rate in (s.worst, s.median, s.best))
        shape = (str(s.head_dim), str(s.causal), str(s.seqlen), str(s.heads))
        table.add_row(*shape, f"{s.wave_instructions:,}", *rates)
    Console().print(table)


def main() -> int:
    """Returns 1 if --at-least is missed by the D128 forward's median, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seqlen", type=int, default=1024, help="queries and keys (default: %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="heads of q, k and v (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each kernel (default: %(default)s)")
    parser.add_argument("--at-least", type=float, metavar="M", help="fail below M million at head_dim 128")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    speeds = [
        measure(head_dim, causal, options.seqlen, options.heads, options.runs)
        for head_dim in (32, 64, 128)
        for causal in (False, True)
    ]
    if options.json:
        print(json.dumps([asdict(speed) for speed in speeds], indent=2))
    else:
        print_table(speeds)
    wanted = options.at_least
    slow = wanted is not None and any(s.median < wanted for s in speeds if s.head_dim == 128)
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
