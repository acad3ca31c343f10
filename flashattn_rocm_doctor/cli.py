"""The command ``flashattn-rocm doctor``."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from flashattn_rocm_doctor.examination import examine
from flashattn_rocm_doctor.finding import Finding
from flashattn_rocm_doctor.machine import Machine

__all__ = ["add_arguments", "main", "run"]

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 if something fails."""
    parser = argparse.ArgumentParser(
        prog="flashattn-rocm doctor",
        description="What stops attention from running here, and one sentence on what to do about each.",
    )
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options; they go to :func:`run`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        help="seconds for each probe of a device (default: %(default)g)",
    )


def run(options: argparse.Namespace) -> int:
    """Examines this machine and prints the findings; 1 if one of them is a failure."""
    findings = examine(Machine(), options.timeout)
    failed = any(finding.status == "fail" for finding in findings)
    if options.json:
        print(json.dumps({"ok": not failed, "findings": [asdict(finding) for finding in findings]}, indent=1))
    else:
        _print(findings)
    return 1 if failed else 0


def _print(findings: Sequence[Finding]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=160, file=sys.stdout)
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        table.add_row(f"[{_STYLES[finding.status]}]{finding.status}[/]", finding.check, _text(finding))
    console.print(table)
    counts = {status: sum(finding.status == status for finding in findings) for status in _STYLES}
    console.print(", ".join(f"{count} {status}" for status, count in counts.items()), highlight=False)


def _text(finding: Finding) -> str:
    from rich.markup import escape

    found = escape(finding.found)
    return f"{found}\n[bold]{escape(finding.advice)}[/]" if finding.advice else found
