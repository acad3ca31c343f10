"""Measures the forward and its rivals on the tables that users compare.

Runs on the card if torch has one, else on the simulated card (FLASHATTN_ROCM_BACKEND decides otherwise).
On the simulator only a sample runs of launches of more than four fills of the card: the tables state the
error, and --whole runs every workgroup.

HBM reads are set against the compulsory floor: Q, K and V read once, whatever the algorithm. A tiled
forward reads K and V once for each round of workgroups that the card holds, unless they stay in L2.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from flashattn_rocm.benchmarks.decode import (
    DecodeRow,
    decode_markdown,
    decode_shapes,
    decode_table,
    run_decode,
    write_decode_csv,
    write_decode_json,
)
from flashattn_rocm.benchmarks.device import Device, choose_device
from flashattn_rocm.benchmarks.implementations import Implementation, implementations
from flashattn_rocm.benchmarks.plots import write_plots
from flashattn_rocm.benchmarks.result import Row
from flashattn_rocm.benchmarks.run import run_case
from flashattn_rocm.benchmarks.shapes import FORWARD_BENCHES, Case, bench_cases, parse_shape, quick_cases
from flashattn_rocm.benchmarks.tables import (
    FLOOR,
    by_table,
    terminal_table,
    write_csv,
    write_json,
    write_markdown,
)
from flashattn_rocm.profiling.plots import figure_class

_NO_TERMINAL_WIDTH = 160
_CAUSAL = {"yes": (True,), "no": (False,), "both": (True, False)}
_OF_TABLES = ("bench", "seqlens", "head_dim", "causal")
# What an option leaves without effect; usage that names both is refused.
_WITHOUT_EFFECT = {
    "decode": ("shapes", *_OF_TABLES, "impl", "whole"),
    "shapes": ("quick", *_OF_TABLES),
    "quick": _OF_TABLES,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
        0; 1 when nothing could be measured or something is missing. Wrong usage exits with 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    _refuse_options_without_effect(parser, options)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_NO_TERMINAL_WIDTH)
    try:
        if options.decode:
            return _run_decode(options, console)
        cases = _cases(options)
        return _run(options, cases, console)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        console.print(f"benchmark: error: {error}", style="red", markup=False, highlight=False)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmark.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    chosen = parser.add_argument_group("what to measure")
    benches, impls = [bench.name for bench in FORWARD_BENCHES], list(implementations())
    text = f"tables: {', '.join(benches)}; default: all"
    chosen.add_argument("--bench", nargs="+", choices=benches, metavar="NAME", help=text)
    chosen.add_argument("--shapes", nargs="+", metavar="B,Sq,Sk,Hq,Hkv,D[,causal]", help="in place of tables")
    text = f"{', '.join(impls)}; default: all that can run"
    chosen.add_argument("--impl", nargs="+", choices=impls, metavar="NAME", help=text)
    chosen.add_argument("--seqlens", nargs="+", type=int, metavar="S", help="in place of each table's own")
    chosen.add_argument("--head-dim", nargs="+", type=int, metavar="D", help="only tables of these head dims")
    chosen.add_argument("--causal", choices=_CAUSAL, help="mask in place of each table's own")
    chosen.add_argument("--decode", action="store_true", help="the decode table instead: KV bytes a second")
    chosen.add_argument("--quick", action="store_true", help="a few short rows")
    chosen.add_argument("--whole", action="store_true", help="simulator: run every workgroup; slow")
    written = parser.add_argument_group("what to write")
    written.add_argument("--json", type=Path, metavar="FILE", help="a list, one object a row")
    written.add_argument(
        "--out", type=Path, metavar="DIR", help="benchmark.md, benchmark.csv and a PNG a table"
    )
    return parser


def _refuse_options_without_effect(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for name, others in _WITHOUT_EFFECT.items():
        for other in others:
            if getattr(options, name) and getattr(options, other):
                parser.error(f"argument --{other.replace('_', '-')}: not allowed with argument --{name}")


def _cases(options: argparse.Namespace) -> list[Case]:
    if options.shapes:
        return [parse_shape(text) for text in options.shapes]
    if options.quick:
        return quick_cases()
    causal = None if options.causal is None else _CAUSAL[options.causal]
    cases = bench_cases(options.bench, options.seqlens, options.head_dim, causal)
    if not cases:
        raise ValueError("no table has such a head dim")
    return cases


def _run(options: argparse.Namespace, cases: Sequence[Case], console: Console) -> int:
    device = choose_device(os.environ.get("FLASHATTN_ROCM_BACKEND") or "auto", whole=options.whole)
    if options.out is not None:
        figure_class()  # without matplotlib fail now, not after the last row
        options.out.mkdir(parents=True, exist_ok=True)
    known = implementations()
    chosen = [known[name] for name in options.impl or known]
    notes = [f"Device: {device.description}", FLOOR[0].upper() + FLOOR[1:]]
    rows: list[Row] = []
    try:
        notes += _measure(device, cases, chosen, rows, console)
    finally:  # Ctrl-C keeps what is there
        _report(options, rows, notes, console)
    return 0 if rows else 1


def _run_decode(options: argparse.Namespace, console: Console) -> int:
    # Whole: all workgroups of a step are under way at once, so nothing can be left out.
    device = choose_device(os.environ.get("FLASHATTN_ROCM_BACKEND") or "auto", whole=True)
    rows: list[DecodeRow] = []
    try:
        for shape in decode_shapes(options.quick):
            rows.append(run_decode(device, shape))
    finally:  # Ctrl-C keeps what is there
        if rows:
            _report_decode(options, rows, device, console)
    return 0


def _report_decode(
    options: argparse.Namespace, rows: Sequence[DecodeRow], device: Device, console: Console
) -> None:
    console.print(decode_table(rows))
    console.print(f"Device: {device.description}", markup=False, highlight=False, soft_wrap=True)
    if options.json is not None:
        write_decode_json(rows, options.json)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "decode.md").write_text(decode_markdown(rows))
        write_decode_csv(rows, options.out / "decode.csv")


def _measure(
    device: Device,
    cases: Sequence[Case],
    chosen: Sequence[Implementation],
    rows: list[Row],
    console: Console,
) -> list[str]:
    """Appends to `rows`; returns a sentence for each thing that did not run."""
    left_out: dict[str, None] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cases) * len(chosen))
        for case in cases:
            for implementation in chosen:
                progress.update(task, description=f"{implementation.name} {case.bench} {case.shape.seqlen_k}")
                found = run_case(device, implementation, case)
                if isinstance(found, Row):
                    rows.append(found)
                else:
                    left_out[f"Not run: {implementation.name}: {found}"] = None
                progress.advance(task)
    return list(left_out)


def _report(options: argparse.Namespace, rows: Sequence[Row], notes: Sequence[str], console: Console) -> None:
    for key, members in by_table(rows).items():
        console.print(terminal_table(key, members))
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if not rows:  # results of an earlier run stay
        return
    written: list[Path] = []
    if options.json is not None:
        write_json(rows, options.json)
        written.append(options.json)
    if options.out is not None:
        write_markdown(rows, notes, options.out / "benchmark.md")
        write_csv(rows, options.out / "benchmark.csv")
        written += [options.out / "benchmark.md", options.out / "benchmark.csv"]
        written += write_plots(rows, options.out)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True, highlight=False)
