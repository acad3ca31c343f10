"""The trials of a run as CSV, JSON and Markdown, and as a table for a terminal."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from tunelib.trial import Trial

_CAUSES_SHOWN = 4


def write_records(trials: Sequence[Trial], folder: Path) -> list[Path]:
    """Writes trials.csv, trials.json and, as docs/tuning shows them, trials.md; the quickest first."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = quickest_first(trials)
    as_csv, as_json, as_md = (folder / f"trials.{kind}" for kind in ("csv", "json", "md"))
    as_md.write_text(_markdown(ordered))
    as_json.write_text(json.dumps([trial.to_json() for trial in ordered], indent=1) + "\n")
    with as_csv.open("w", newline="") as stream:
        rows = [trial.to_csv() for trial in ordered]
        writer = csv.DictWriter(stream, list(rows[0]) if rows else ["name"])
        writer.writeheader()
        writer.writerows(rows)
    return [as_csv, as_json, as_md]


def write_launches(means: Mapping[str, float], launches: Mapping[str, float | None], folder: Path) -> Path:
    """Writes launches.md: what whole launches of each set of tiles took, and each launch."""
    lines = ["| tiles | clocks of whole launches, geometric mean |", "|---|---|"]
    lines += [f"| {tiles} | {clocks:,.0f} |" for tiles, clocks in sorted(means.items(), key=lambda m: m[1])]
    lines += ["", "| kernel | shape | clocks |", "|---|---|---|"]
    for name, clocks in launches.items():
        kernel, shape = name.split()
        lines.append(f"| {kernel} | {shape} | {'failed' if clocks is None else f'{clocks:,.0f}'} |")
    file = folder / "launches.md"
    file.write_text("\n".join(lines) + "\n")
    return file


def quickest_first(trials: Sequence[Trial]) -> list[Trial]:
    """By head dim, gradient, and TFLOPS; what was not timed last."""
    return sorted(trials, key=lambda t: (-t.tile.head_dim, t.group, -(t.tflops or 0.0), t.tile.name))


def _markdown(trials: Sequence[Trial]) -> str:
    lines = [
        "| tile | VGPR | LDS | a CU | cycles | TFLOPS | causes, % of SIMD clocks | verdict |",
        "|---" * 8 + "|",
    ]
    for trial in trials:
        largest = sorted(trial.causes.items(), key=lambda cause: -cause[1])[:_CAUSES_SHOWN]
        cells = (
            trial.tile.name,
            *(number or "" for number in (trial.vgprs, trial.lds_bytes, trial.workgroups_per_cu)),
            trial.cycles or "",
            f"{trial.tflops:.2f}" if trial.tflops else "",
            ", ".join(f"{name} {share:.1f}" for name, share in largest),
            trial.verdict.value + (f": {trial.note}" if trial.note else ""),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def trial_table(trials: Sequence[Trial], where: str) -> Table:
    """The trials for a terminal."""
    table = Table(title=f"Tiles, {where}", title_justify="left")
    table.add_column("tile", no_wrap=True)
    for heading in ("VGPR", "LDS", "a CU", "cycles", "TFLOPS", "VALU %", "verdict"):
        table.add_column(heading, justify="right")
    for trial in quickest_first(trials):
        table.add_row(
            trial.tile.name,
            *(str(number or "") for number in (trial.vgprs, trial.lds_bytes, trial.workgroups_per_cu)),
            f"{trial.cycles:,}" if trial.cycles else "",
            f"{trial.tflops:.2f}" if trial.tflops else "",
            f"{trial.valu_busy:.1f}" if trial.valu_busy else "",
            trial.verdict.value + (f": {trial.note}" if trial.note else ""),
        )
    return table
