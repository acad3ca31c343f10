"""The verdict over all runs, and the runs as JSON, CSV, table and plot."""

import csv
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from flashattn_rocm.profiling.plots import figure_class
from traininglib.run import Run

__all__ = ["Verdict", "draw", "judge", "table", "write_csv", "write_json"]

_SMOOTHED_STEPS = 10
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")


@dataclass(frozen=True)
class Verdict:
    """Whether attention on the kernels trains as attention by torch's math does.

    Attributes:
        noise: standard deviation (n - 1) over the seeds of the final losses with math.
        largest_difference: between the final losses with the kernels and with math, of equal seeds.
        learned: every final loss is below that of predicting bytes by their frequency.
        only_kernels: every attention of the runs on the kernels, forward and backward, was computed there.
    """

    noise: float
    largest_difference: float
    learned: bool
    only_kernels: bool

    @property
    def passed(self) -> bool:
        """All of it, and no seed's difference exceeds the noise."""
        return self.learned and self.only_kernels and self.largest_difference <= self.noise

    def __str__(self) -> str:
        within = "within" if self.largest_difference <= self.noise else "NOT within"
        lines = [
            f"final losses {within} noise of the seeds: with equal seeds they differ by at most "
            f"{self.largest_difference:.4f}; over the seeds math's deviate by {self.noise:.4f}"
        ]
        if not self.learned:
            lines.append("NOT learned: a final loss is above that of predicting bytes by their frequency")
        if not self.only_kernels:
            lines.append("NOT all attention was computed by the kernels")
        return "\n".join(lines)


def judge(
    runs: Sequence[Run], layers: int, forwards: int, steps: int, loss_without_context: float
) -> Verdict:
    """The verdict.

    Args:
        runs: with "kernels" and with "math", of the same seeds, at least two.
        layers: of the model.
        forwards: of the model in a run.
        steps: of a run; each has a backward.
        loss_without_context: see Text.
    """
    kernels, math = ({run.seed: run for run in runs if run.attention == name} for name in ("kernels", "math"))
    expected = {"fwd": layers * forwards, "bwd": layers * steps}
    return Verdict(
        noise=statistics.stdev(run.final_loss for run in math.values()),
        largest_difference=max(
            abs(kernels[seed].final_loss - math[seed].final_loss) for seed in kernels | math
        ),
        learned=all(run.final_loss < loss_without_context for run in runs),
        only_kernels=all(run.calls == expected for run in kernels.values()),
    )


def table(runs: Sequence[Run]) -> Table:
    """A row a run."""
    result = Table(title="loss, nats a byte", title_justify="left")
    for heading in ("seed", "attention", "first", "last steps", "held out", "attention calls"):
        result.add_column(heading, justify="left" if heading == "attention calls" else "right")
    for run in sorted(runs, key=lambda run: (run.seed, run.attention)):
        result.add_row(
            str(run.seed),
            run.attention,
            f"{run.losses[0]:.4f}",
            f"{statistics.fmean(run.losses[-_SMOOTHED_STEPS:]):.4f}",
            f"{run.final_loss:.4f}",
            ", ".join(f"{count} {name}" for name, count in sorted(run.calls.items())),
        )
    return result


def write_json(runs: Sequence[Run], verdict: Verdict, settings: Mapping[str, Any], file: Path) -> None:
    """The runs, the verdict, and what they were made with."""
    content = {
        "settings": dict(settings),
        "runs": [asdict(run) for run in runs],
        "verdict": asdict(verdict) | {"passed": verdict.passed},
    }
    file.write_text(json.dumps(content, indent=1) + "\n")


def write_csv(runs: Sequence[Run], file: Path) -> None:
    """A line a step, a column a run."""
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["step", *(f"{run.attention} seed {run.seed}" for run in runs)])
        for step, losses in enumerate(zip(*(run.losses for run in runs), strict=True)):
            writer.writerow([step, *losses])


def draw(runs: Sequence[Run], where: str, file: Path) -> None:
    """Both curves of each seed, and their difference.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = figure_class()(figsize=(9, 6.5), layout="constrained")
    figure.suptitle(f"A small GPT learns the standard library's sources; attention on {where}")
    curves, differences = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    by_seed = {run.seed: run for run in runs if run.attention == "math"}
    for run in (run for run in runs if run.attention == "kernels"):
        math, colour = by_seed[run.seed], _COLOURS[run.seed % len(_COLOURS)]
        curves.plot(math.losses, color=colour, alpha=0.4, lw=3, label=f"torch's math, seed {run.seed}")
        curves.plot(run.losses, color=colour, lw=1, label=f"flashattn_rocm, seed {run.seed}")
        apart = [ours - theirs for ours, theirs in zip(run.losses, math.losses, strict=True)]
        differences.plot(apart, color=colour, lw=1)
    curves.set(ylabel="loss of the step, nats a byte")
    curves.legend(ncols=2)
    differences.set(xlabel="step", ylabel="difference")
    for axes in (curves, differences):
        axes.grid(alpha=0.2)
    figure.savefig(file, dpi=120)
