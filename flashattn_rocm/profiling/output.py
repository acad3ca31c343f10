"""A report as tables, CSV and JSON, all made from the same rows."""

import csv
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flashattn_rocm.profiling.report import Report
from flashattn_rocm.profiling.rows import Value


def print_report(report: Report, console: Console) -> None:
    """Prints every section as a table."""
    for section in report.sections:
        table = Table(
            title=section.title, title_justify="left", show_header=False, min_width=len(section.title)
        )
        table.add_column("name")
        table.add_column("value", justify="right")
        table.add_column("unit")
        table.add_column("note", overflow="fold")
        for row in section.rows:
            table.add_row(row.name, _text(row.value), row.unit, row.note)
        console.print(table)


def write_json(report: Report, path: Path) -> None:
    """Writes Report.to_dict()."""
    path.write_text(json.dumps(report.to_dict()) + "\n")


def write_csv(report: Report, path: Path) -> None:
    """Writes one line a row: kernel, section, name, value, unit, note."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kernel", "section", "name", "value", "unit", "note"])
        for section in report.sections:
            for row in section.rows:
                writer.writerow([report.profile.kernel, section.key, row.name, row.value, row.unit, row.note])


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
