"""Plots of a report as PNG files. matplotlib is imported when one is drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashattn_rocm.profiling.profile import CAUSE_NAMES, Issue
from flashattn_rocm.profiling.report import Report, Roofline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 120
# A wait must be told from work at a glance: work is coloured, waits are grey to red, no wave is white.
_CAUSE_COLOURS = {
    "valu": "#2b6cb0",
    "salu": "#63b3ed",
    "lds_pipe": "#2f855a",
    "lds_latency": "#9ae6b4",
    "vmem_issue": "#c05621",
    "vmem_latency": "#fbd38d",
    "smem_latency": "#faf089",
    "barrier": "#c53030",
    "fetch": "#b794f4",
    "control": "#a0aec0",
    "no_wave": "#edf2f7",
}
_OTHER_COLOUR = "#718096"
# Of a wave's row in the timeline: upper edge and height, so that loads lie under the computing.
_TRACKS = {
    "valu": ("VALU", "#2b6cb0", 0.08, 0.35),
    "barrier": ("waits at a barrier", "#c53030", 0.08, 0.35),
    "lds": ("LDS access under way", "#2f855a", 0.46, 0.2),
    "vmem": ("global load or store under way", "#c05621", 0.7, 0.2),
}
_TIMELINE_CLOCKS = 12_000  # a block of 32 keys of the D128 forward takes some 9,000


def write_plots(report: Report, folder: Path) -> list[Path]:
    """Draws causes.png, roofline.png if the useful work is known, and timeline.png if it was recorded.

    Args:
        report: what to draw.
        folder: made if it is missing.

    Returns:
        The files.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure_class()  # fail before the folder is made
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"causes.png": draw_causes(report)}
    roofline = report.roofline()
    if roofline is not None:
        figures["roofline.png"] = draw_roofline(report, roofline)
    if report.profile.timeline:
        figures["timeline.png"] = draw_timeline(report)
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=_DPI)
    return [folder / name for name in figures]


def figure_class() -> "type[Figure]":
    """The Figure of matplotlib, which needs no display.

    Raises:
        ImportError: matplotlib is not installed; says how to install it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'flashattn-rocm[profile]'"
        ) from error
    return Figure


def draw_roofline(report: Report, roofline: Roofline) -> "Figure":
    """Attainable TFLOPS over arithmetic intensity, and where the launch lies; both axes logarithmic."""
    figure = figure_class()(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    ridge = roofline.peak / roofline.bandwidth
    left, right = min(ridge, roofline.intensity) / 10, max(ridge, roofline.intensity) * 10
    axes.plot([left, ridge, right], [left * roofline.bandwidth, roofline.peak, roofline.peak], color="black")
    axes.plot([roofline.intensity] * 2, [roofline.reached, roofline.attainable], ":", color="grey")
    share = roofline.reached / roofline.attainable
    axes.plot(
        [roofline.intensity],
        [roofline.reached],
        "o",
        color="#c53030",
        label=f"{report.profile.kernel}\n{roofline.reached:.2f} TFLOPS simulated, {share:.0%} of attainable",
    )
    peak_name = report.work.peak_name if report.work else ""
    axes.annotate(
        f"{peak_name} {roofline.peak:.1f} TFLOPS", (ridge, roofline.peak), (0, 5), textcoords="offset points"
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="useful FLOP per HBM byte (simulated)",
        ylabel="TFLOPS",
        title=f"Roofline, {report.profile.card.name}, simulated",
    )
    axes.set_ylim(min(left * roofline.bandwidth, roofline.reached) / 2, roofline.peak * 2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    figure.legend(*_legend(axes), loc="outside lower center", fontsize=8)
    axes.grid(which="both", alpha=0.2)
    return figure


def draw_causes(report: Report) -> "Figure":
    """One stacked bar: the share of every cause in the SIMDs' clocks."""
    figure = figure_class()(figsize=(9, 3.2), layout="constrained")
    axes = figure.add_subplot()
    causes = report.profile.causes
    total, left = sum(causes.values()), 0.0
    for key in [*CAUSE_NAMES, *(key for key in causes if key not in CAUSE_NAMES)]:
        share = 100 * causes.get(key, 0) / total
        label = f"{CAUSE_NAMES.get(key, key)} {share:.1f} %"
        colour = _CAUSE_COLOURS.get(key, _OTHER_COLOUR)
        axes.barh([0], [share], left=left, color=colour, edgecolor="black", linewidth=0.4, label=label)
        left += share
    axes.set(
        xlim=(0, 100),
        yticks=[],
        xlabel="% of SIMD clocks",
        title=f"Simulated clocks by cause: {report.profile.kernel}",
    )
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return figure


def draw_timeline(report: Report) -> "Figure":
    """A row a wave of compute unit 0: when it computes, and under it which loads are under way."""
    issues = report.profile.timeline
    begin = _window_begin(issues)
    end = begin + _TIMELINE_CLOCKS
    shown = [issue for issue in issues if issue.clock < end and issue.clock + issue.clocks > begin]
    waves = sorted({(issue.simd, issue.wave) for issue in shown})
    figure = figure_class()(figsize=(13, 1.6 + 0.45 * len(waves)), layout="constrained")
    axes = figure.add_subplot()
    for kind, (label, colour, top, height) in _TRACKS.items():
        for row, wave in enumerate(waves):
            spans = merge_spans([i for i in shown if i.kind == kind and (i.simd, i.wave) == wave])
            name = label if row == 0 else None
            axes.broken_barh(spans, (row + top, height), color=colour, linewidth=0, label=name)
    axes.set(
        xlim=(begin, end),
        yticks=[row + 0.5 for row in range(len(waves))],
        yticklabels=[f"SIMD {simd}, wave {wave}" for simd, wave in waves],
        xlabel="simulated clock",
        title=f"Waves of compute unit 0: {report.profile.kernel}",
    )
    axes.invert_yaxis()
    figure.legend(*_legend(axes), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def merge_spans(issues: Sequence[Issue]) -> list[tuple[int, int]]:
    """(begin, clocks) of the times in which at least one of the issues is under way."""
    spans: list[tuple[int, int]] = []
    for issue in sorted(issues, key=lambda issue: issue.clock):
        end = issue.clock + issue.clocks
        if spans and issue.clock <= spans[-1][0] + spans[-1][1]:
            begin, clocks = spans[-1]
            spans[-1] = (begin, max(clocks, end - begin))
        else:
            spans.append((issue.clock, issue.clocks))
    return spans


def _window_begin(issues: Sequence[Issue]) -> int:
    # The recording starts with the kernel's prologue on cold caches; its middle is in the main loop.
    first, last = issues[0].clock, issues[-1].clock
    return max(first, (first + last - _TIMELINE_CLOCKS) // 2)


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    handles, labels = axes.get_legend_handles_labels()
    return handles, labels
