"""Results as tables: on the terminal, Markdown, CSV and JSON."""

import csv
import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table

from flashattn_rocm.benchmarks.result import Result, Row
from flashattn_rocm.benchmarks.shapes import CUSTOM, titles

FLOOR = "floor: Q, K and V read once"

Key = tuple[str, bool]


def by_table(rows: Sequence[Row]) -> dict[Key, list[Row]]:
    """Rows by bench and mask, each in the order of `rows`."""
    tables: dict[Key, list[Row]] = {}
    for row in rows:
        tables.setdefault((row.result.bench, row.result.causal), []).append(row)
    return tables


def title_of(key: Key) -> str:
    """Heading of a table."""
    bench, causal = key
    return f"{titles()[bench]}, fp16, {'causal' if causal else 'not causal'}"


def terminal_table(key: Key, rows: Sequence[Row]) -> Table:
    """For rich."""
    table = Table(title=title_of(key), title_justify="left")
    for name in _COLUMNS:
        left = name in ("shape", "implementation", "tile")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(cell(row, rows) for cell in _COLUMNS.values()))
    return table


def markdown(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """A document with a table each bench and mask."""
    parts = ["# Benchmark", "\n".join(f"* {note}" for note in notes)]
    for key, members in by_table(rows).items():
        lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
        lines += [
            "| " + " | ".join(cell(row, members) for cell in _COLUMNS.values()) + " |" for row in members
        ]
        parts += [f"## {title_of(key)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def write_markdown(rows: Sequence[Row], notes: Sequence[str], path: Path) -> None:
    """Writes markdown()."""
    path.write_text(markdown(rows, notes))


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Writes a list, one object a row."""
    path.write_text(json.dumps([row.result.to_dict() for row in rows], indent=1) + "\n")


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Writes the keys of the JSON as columns; what a device cannot tell is empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Result)])
        writer.writeheader()
        writer.writerows(row.result.to_dict() for row in rows)


def _shape(row: Row, _: Sequence[Row]) -> str:
    r = row.result
    seqlen = f"S {r.seqlen_q}" if r.seqlen_q == r.seqlen_k else f"S {r.seqlen_q} x {r.seqlen_k}"
    # The title of a bench has the rest.
    return f"B{r.batch} H{r.heads_q}/{r.heads_kv} D{r.head_dim} {seqlen}" if r.bench == CUSTOM else seqlen


def _against_triton(row: Row, table: Sequence[Row]) -> str:
    """How many times as fast as the Triton kernel on the same shape."""
    for other in table:
        if other.result.impl == "triton" and _shape(other, table) == _shape(row, table):
            return f"{other.result.ms / row.result.ms:.2f}"
    return ""


def _optional(value: float | None, spec: str) -> str:
    return "" if value is None else format(value, spec)


_COLUMNS: dict[str, Callable[[Row, Sequence[Row]], str]] = {
    "shape": _shape,
    "implementation": lambda row, _: row.result.impl,
    "ms": lambda row, _: f"{row.result.ms:.4g}",
    "useful TFLOPS": lambda row, _: f"{row.result.tflops:.2f}",
    "% of peak": lambda row, _: f"{100 * row.share_of_peak:.1f}",
    "x triton": _against_triton,
    "VALU busy %": lambda row, _: _optional(row.result.valu_busy, ".1f"),
    "HBM read / floor": lambda row, _: _optional(row.reads_over_floor, ".2f"),
    "sampling error %": lambda row, _: _optional(
        None if row.sampling_error is None else 100 * row.sampling_error, ".1f"
    ),
    "tile": lambda row, _: row.result.tile,
}
