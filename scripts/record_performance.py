#!/usr/bin/env python3
"""Measures the launches of the regression guard and writes tests/perf/record.json; prints what changed.

CI fails when a figure gets worse by more than 2 % (tests/perf). Run this after a change that is meant to move
them, also to the better, and commit the record with it.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flashattn_rocm.benchmarks.regression import (
    Record,
    RecordRow,
    compiler,
    measure,
    measure_backward,
    measure_decode,
    read_record,
    write_record,
)

RECORD = Path(__file__).parents[1] / "tests" / "perf" / "record.json"


def main() -> None:
    """Entry point."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    before = {row.shape: row for row in read_record(RECORD).rows} if RECORD.exists() else {}
    rows = [*measure(), *measure_backward(), *measure_decode()]
    table = Table(title="B,Sq,Sk,Hq,Hkv,D: simulated cycles", title_justify="left")
    for name in ("shape", "recorded", "now", "change", "dot2 of the inner loop", "kernel"):
        table.add_column(name, justify="left" if name in ("shape", "kernel") else "right")
    for row in rows:
        table.add_row(*_cells(before.get(row.shape), row))
    console = Console()
    (console if console.is_terminal else Console(width=140)).print(table)
    write_record(Record(compiler(), tuple(rows)), RECORD)


def _cells(old: RecordRow | None, row: RecordRow) -> tuple[str, ...]:
    recorded = f"{old.cycles:,}" if old else ""
    change = f"{row.cycles / old.cycles - 1:+.2%}" if old else "new"
    return row.shape, recorded, f"{row.cycles:,}", change, f"{row.inner_loop.dot2_share:.1%}", row.kernel


if __name__ == "__main__":
    main()
