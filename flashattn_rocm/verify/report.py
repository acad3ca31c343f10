"""The outcomes as a table, as JSON and as a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from flashattn_rocm.profiling.plots import figure_class
from flashattn_rocm.verify.outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["as_json", "draw", "table"]

_TITLES = {
    "output": "outputs of single calls",
    "statistics": "log-sum-exp of growing prefixes",
    "model": "logits of a language model",
}
_DPI = 120


def table(outcomes: Sequence[Outcome], where: str) -> Table:
    """All rows, by layer."""
    result = Table(
        title=f"Attention on {where} against float64 (a model: against float32)", title_justify="left"
    )
    for heading in ("layer", "case", "max abs error", "torch's math", "allowed", "cosine", ""):
        result.add_column(heading, justify="left" if heading in ("layer", "case", "") else "right")
    layer = ""
    for outcome in outcomes:
        if layer and outcome.layer != layer:
            result.add_section()
        result.add_row(
            outcome.layer if outcome.layer != layer else "",
            outcome.case,
            f"{outcome.error:.2e}",
            "" if outcome.torch_error is None else f"{outcome.torch_error:.2e}",
            f"{outcome.allowed:.2e}",
            "" if outcome.cosine is None else f"{outcome.cosine:.7f}",
            "[green]pass[/]" if outcome.passed else f"[bold red]FAIL[/]: {outcome.fault}",
        )
        layer = outcome.layer
    return result


def as_json(outcomes: Sequence[Outcome], not_run: Mapping[str, str], device: str, ok: bool) -> dict[str, Any]:
    """The same as one object; "not_run" has the reason of each layer that could not be."""
    return {
        "ok": ok,
        "device": device,
        "not_run": dict(not_run),
        "rows": [asdict(outcome) | {"passed": outcome.passed} for outcome in outcomes],
    }


def draw(outcomes: Sequence[Outcome], where: str, file: Path) -> None:
    """Errors of each layer over length, beside torch's and what is allowed.

    Raises:
        ImportError: matplotlib is not installed.
    """
    layers = [layer for layer in _TITLES if any(outcome.layer == layer for outcome in outcomes)]
    figure = figure_class()(figsize=(5 * len(layers), 4.5), layout="constrained")
    figure.suptitle(f"Attention on {where}: largest absolute errors")
    for number, layer in enumerate(layers, 1):
        axes = figure.add_subplot(1, len(layers), number)
        _draw_layer(axes, [outcome for outcome in outcomes if outcome.layer == layer])
        axes.set(title=_TITLES[layer], xlabel="keys", ylabel="max abs error")
    figure.savefig(file, dpi=_DPI)


def _draw_layer(axes: "Axes", outcomes: Sequence[Outcome]) -> None:
    x = [outcome.position for outcome in outcomes]
    series: dict[str, tuple[str, str, list[Any]]] = {
        "allowed": ("_", "tab:gray", [outcome.allowed for outcome in outcomes]),
        "torch's math": ("x", "tab:orange", [outcome.torch_error for outcome in outcomes]),
        "flashattn_rocm": ("o", "tab:blue", [outcome.error for outcome in outcomes]),
    }
    for label, (marker, color, y) in series.items():
        axes.scatter(x, y, marker=marker, color=color, label=label, alpha=0.7)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if failed:
        positions, errors = [o.position for o in failed], [o.error for o in failed]
        axes.scatter(positions, errors, s=120, facecolors="none", edgecolors="red", label="failed")
    if max(x) > 4 * min(x):
        axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(set(x))[:: max(len(set(x)) // 8, 1)])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(alpha=0.2)
    axes.legend()
