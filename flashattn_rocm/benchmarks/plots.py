"""Plots of results as PNG files. matplotlib is imported when one is drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flashattn_rocm.benchmarks.result import Row
from flashattn_rocm.benchmarks.tables import Key, by_table, title_of
from flashattn_rocm.profiling.plots import figure_class

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 120


def write_plots(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Draws TFLOPS over sequence length, a file each bench and mask.

    Raises:
        ImportError: matplotlib is not installed.
    """
    written = []
    for key, members in by_table(rows).items():
        bench, causal = key
        path = folder / f"{bench}-{'causal' if causal else 'full'}.png"
        draw_table(key, members).savefig(path, dpi=_DPI)
        written.append(path)
    return written


def draw_table(key: Key, rows: Sequence[Row]) -> "Figure":
    """Useful TFLOPS over keys, a line each implementation, under the card's peak."""
    figure = figure_class()(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for impl in dict.fromkeys(row.result.impl for row in rows):
        points = sorted((row.result.seqlen_k, row.result.tflops) for row in rows if row.result.impl == impl)
        axes.plot([x for x, _ in points], [y for _, y in points], "o-", label=impl)
    peak = max(row.peak_tflops for row in rows)
    axes.axhline(peak, color="black", linestyle="--", label=f"fp16 peak, {peak:.1f} TFLOPS")
    simulated = any(row.result.backend == "sim" for row in rows)
    axes.set(
        xlabel="keys", ylabel="useful TFLOPS" + (" (simulated)" if simulated else ""), title=title_of(key)
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.2)
    axes.legend()
    return figure
