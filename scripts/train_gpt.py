#!/usr/bin/env python3
"""Trains a small GPT with attention on these kernels and again on torch's math, and compares the losses.

The text is the standard library's own sources, by bytes. Each seed decides weights and batches of two runs,
so nothing but attention differs between them. The verdict: with every seed the held-out losses after the
last step differ by no more than the standard deviation of math's over the seeds, both runs have learned, and
every attention of the first was computed by the kernels, forward and backward.

Exit code: 0 if so, 1 if not, 2 if a package is missing or an option is bad.
"""

import argparse
import dataclasses
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from flashattn_rocm.profiling.plots import figure_class
from traininglib.attention import on_kernels, on_math
from traininglib.gpt import GptConfig
from traininglib.report import draw, judge, table, write_csv, write_json
from traininglib.run import Run, Schedule, Text, standard_library, train

CONFIG, SCHEDULE = GptConfig(), Schedule()
_OUT = Path("build/training-proof")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parse(arguments)
    try:
        figure_class()  # without matplotlib fail now, not after the last run
    except ImportError as error:
        print(f"train_gpt: {error}", file=sys.stderr)
        return 2
    schedule = dataclasses.replace(SCHEDULE, steps=options.steps)
    text = standard_library()
    torch.set_num_threads(1)  # products this small are quicker so, and sums have one order on every machine
    runs = _train_all(options, schedule, text)
    forwards = schedule.steps + schedule.judged // schedule.batch
    verdict = judge(runs, CONFIG.layers, forwards, schedule.steps, text.loss_without_context())
    where = "the simulated card" if options.device == "cpu" else torch.cuda.get_device_name()
    settings = {
        "device": where,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        **dataclasses.asdict(CONFIG),
        **dataclasses.asdict(schedule),
        "loss_without_context": text.loss_without_context(),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(runs, verdict, settings, options.out / "losses.json")
    write_csv(runs, options.out / "losses.csv")
    draw(runs, where, options.out / "losses.png")
    console = _console()
    console.print(table(runs))
    for name in ("losses.png", "losses.json", "losses.csv"):
        console.print(f"wrote {options.out / name}", highlight=False, soft_wrap=True)
    console.print(str(verdict), markup=False, highlight=False, soft_wrap=True)
    return 0 if verdict.passed else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="train_gpt.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--steps", type=int, default=SCHEDULE.steps, help="of each run (default: %(default)s)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="S")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cpu: the simulated card")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="DIR", help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error(f"argument --steps: must be at least 1, got {options.steps}")
    if len(set(options.seeds)) < 2 or len(set(options.seeds)) < len(options.seeds):
        parser.error("argument --seeds: at least two, all different, are needed to tell noise")
    if options.device == "cuda" and not (torch.version.hip and torch.cuda.is_available()):
        parser.error("argument --device: this torch sees no card; `flashattn-rocm doctor` says why")
    return options


def _train_all(options: argparse.Namespace, schedule: Schedule, text: Text) -> list[Run]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    runs = []
    with Progress(*columns, console=_console()) as progress:
        for seed in options.seeds:
            for name, where in (("kernels", on_kernels()), ("math", on_math())):
                task = progress.add_task(f"seed {seed}, {name}", total=schedule.steps)

                done = functools.partial(progress.advance, task)
                runs.append(train(name, where, seed, text, CONFIG, schedule, options.device, done))
    return runs


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=120)


if __name__ == "__main__":
    sys.exit(main())
