"""The command ``flashattn-rocm verify``."""

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.console import Console

from flashattn_rocm.verify.matrix import Cell, run_matrix, write_matrix
from flashattn_rocm.verify.model import verify_model
from flashattn_rocm.verify.outcome import Outcome
from flashattn_rocm.verify.outputs import verify_outputs
from flashattn_rocm.verify.report import as_json, draw, table
from flashattn_rocm.verify.statistics import verify_statistics

__all__ = ["add_verify_command"]

_LAYERS: dict[str, Callable[[str, bool], Iterator[Outcome]]] = {
    "output": verify_outputs,
    "statistics": verify_statistics,
    "model": verify_model,
}
_OF_LAYERS = ("quick", "layer", "json", "plot")  # options that the matrix has no use for


def add_verify_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds ``verify``; it sets ``run``, a function of the options."""
    parser = commands.add_parser(
        "verify",
        help="check attention here against float64",
        description="Three layers against float64: outputs of single calls, the running statistics block by "
        "block, and a real language model end to end. Exit status 1 if a row fails, if nothing was run, or "
        "if a layer that --layer names could not be.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer shapes, blocks and tokens")
    parser.add_argument("--layer", nargs="+", choices=_LAYERS, help="default: all")
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="cpu: the simulated card; cuda: a card; default: a card if any",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the errors to a PNG file")
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="run the support matrix instead, and write its page"
    )
    parser.set_defaults(run=functools.partial(_run, parser))


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    if options.matrix is not None:
        for name in _OF_LAYERS:
            if getattr(options, name):
                parser.error(f"argument --{name}: not allowed with argument --matrix")
    device = options.device or ("cuda" if torch.version.hip and torch.cuda.is_available() else "cpu")
    if device == "cuda" and not (torch.version.hip and torch.cuda.is_available()):
        raise RuntimeError("--device cuda: this torch sees no card; `flashattn-rocm doctor` says why")
    where = "the simulated card" if device == "cpu" else torch.cuda.get_device_name()
    screen = Console(stderr=options.json)
    if not screen.is_terminal:
        screen = Console(stderr=options.json, width=160)
    if options.matrix is not None:
        return _run_matrix(options.matrix, device, screen)
    outcomes, not_run = _run_layers(options, device, screen)
    if options.plot is not None and outcomes:
        draw(outcomes, where, options.plot)
    asked_for_but_not_run = set(options.layer or ()) & set(not_run)
    ok = bool(outcomes) and all(outcome.passed for outcome in outcomes) and not asked_for_but_not_run
    if options.json:
        print(json.dumps(as_json(outcomes, not_run, device, ok), indent=1))
    else:
        screen.print(table(outcomes, where))
        for layer, reason in not_run.items():
            screen.print(f"{layer}: not run: {reason}", markup=False, highlight=False)
        right = sum(outcome.passed for outcome in outcomes)
        screen.print(f"{right} of {len(outcomes)} rows pass", highlight=False)
    return 0 if ok else 1


def _run_layers(
    options: argparse.Namespace, device: str, screen: Console
) -> tuple[list[Outcome], dict[str, str]]:
    """The outcomes, and the reason of each layer that could not be run."""
    outcomes: list[Outcome] = []
    not_run = {}
    with screen.status("") as status:
        for layer in options.layer or _LAYERS:
            try:
                for outcome in _LAYERS[layer](device, options.quick):
                    status.update(f"{layer}: {outcome.case}")
                    outcomes.append(outcome)
            except ImportError as error:
                not_run[layer] = str(error)
    return outcomes, not_run


def _run_matrix(file: Path, device: str, screen: Console) -> int:
    counts = {"yes": 0, "no": 0, "wrong": 0}

    def count(cell: Cell) -> None:
        counts[cell.state] += 1
        status.update(f"{cell.feature}, {cell.dtype}, D{cell.head_dim}")
        if cell.state == "wrong":
            print(f"wrong: {cell.feature}, {cell.dtype}, D{cell.head_dim}: {cell.reason}", file=sys.stderr)

    with screen.status("") as status:
        cells = run_matrix(device, done=count)
    write_matrix(cells, device, file)
    screen.print(f"{file}: " + ", ".join(f"{n} {state}" for state, n in counts.items()), highlight=False)
    return 1 if counts["wrong"] else 0
