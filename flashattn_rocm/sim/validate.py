"""``flashattn-rocm sim validate``: the simulator's timing against published figures, in one table."""

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flashattn_rocm.sim.bench import Bench
from flashattn_rocm.sim.card import TimedCard
from flashattn_rocm.sim.hip import simulator_library
from flashattn_rocm.sim.published import AIM, UNEXPLAINED, Figure, load_figures
from flashattn_rocm.sim.validation_kernels import BUFFER_BYTES, KERNEL_FILES, REPOSITORY, compile_kernels


@dataclass(frozen=True)
class Result:
    """A figure and what the simulator makes of it."""

    figure: Figure
    simulated: float

    @property
    def ratio(self) -> float:
        """Simulated over published."""
        return self.simulated / self.figure.published

    @property
    def in_band(self) -> bool:
        """Whether the ratio is in the figure's own band."""
        low, high = self.figure.band
        return low <= self.ratio <= high

    def as_json(self) -> dict[str, object]:
        """The line of the report."""
        return {
            "name": self.figure.name,
            "source": self.figure.source,
            "published": self.figure.published,
            "unit": self.figure.unit,
            "simulated": float(f"{self.simulated:.4g}"),
            "ratio": round(self.ratio, 3),
            "fitted": self.figure.fitted,
        }


@dataclass(frozen=True)
class OpcodeCoverage:
    """How many opcodes the simulator executes, and how many of those an instruction test names.

    `tested` is None where the tests are not installed, as in a wheel.
    """

    known: int
    tested: int | None


def simulate_figures(figures: Sequence[Figure]) -> Iterator[Result]:
    """Runs the kernels one after the other.

    Raises:
        FileNotFoundError: the source tree or the simulator is not there.
        RuntimeError: no compiler, or a kernel failed.
    """
    code_objects = [compile_kernels(source) for source in KERNEL_FILES]
    with closing(TimedCard(code_objects, BUFFER_BYTES)) as card:
        bench = Bench(card)
        for figure in figures:
            yield Result(figure, bench.simulate(figure))


def opcode_coverage() -> OpcodeCoverage:
    """Counts from the simulator's own list and from the instruction tests' snippets."""
    tool = simulator_library().with_name("flashattn-sim")
    done = subprocess.run([tool, "opcodes"], capture_output=True, text=True, check=True)
    known = {line.split()[1] for line in done.stdout.splitlines()[1:]}
    if not (REPOSITORY / "tests" / "sim" / "isa" / "test_coverage.py").is_file():
        return OpcodeCoverage(len(known), None)
    if str(REPOSITORY) not in sys.path:
        sys.path.insert(0, str(REPOSITORY))
    try:
        coverage = importlib.import_module("tests.sim.isa.test_coverage")
    except ImportError:  # of pytest
        return OpcodeCoverage(len(known), None)
    return OpcodeCoverage(len(known), len(known & coverage.opcodes_under_test()))


def _verdict(result: Result) -> str:
    if not result.in_band:
        return "[red]out of band[/red]"
    if result.figure.band != AIM:
        unexplained = result.figure.note.startswith(UNEXPLAINED)
        return "[yellow]unexplained[/yellow]" if unexplained else "[green]in its own band[/green]"
    return "fitted" if result.figure.fitted else "[green]ok[/green]"


def print_results(results: Sequence[Result], console: Console) -> None:
    """One row a figure, then a sentence for every note."""
    table = Table(title="Published and simulated figures (nothing here was measured by this project)")
    for heading in ("name", "source", "published", "simulated", "unit", "ratio", ""):
        right = heading in ("published", "simulated", "ratio")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading != "source")
    for result in results:
        figure = result.figure
        numbers = (f"{figure.published:g}", f"{result.simulated:.4g}", figure.unit, f"{result.ratio:.3f}")
        table.add_row(escape(figure.name), figure.source, *numbers, _verdict(result))
    console.print(table)
    for result in results:
        if result.figure.note:
            console.print(f"{result.figure.name}: {result.figure.note}", highlight=False, markup=False)


def write_json(file: Path, results: Sequence[Result], coverage: OpcodeCoverage) -> None:
    """One JSON object a line: the figures, then the opcodes."""
    opcodes = {"opcodes_known": coverage.known, "opcodes_tested": coverage.tested}
    lines = [*(result.as_json() for result in results), opcodes]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 when a figure leaves its band, 2 when it could not be simulated."""
    parser = argparse.ArgumentParser(prog="flashattn-rocm sim validate", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write one JSON object a line")
    parser.add_argument("--only", metavar="NAME", help="only figures whose name contains NAME")
    options = parser.parse_args(arguments)
    figures = [f for f in load_figures() if not options.only or options.only.lower() in f.name.lower()]
    if not figures:
        names = ", ".join(f.name for f in load_figures())
        print(f"--only {options.only!r} names no figure; there are: {names}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 130)
    try:
        with console.status("simulating") as status:
            results = []
            for result in simulate_figures(figures):
                results.append(result)
                status.update(f"simulating ({len(results)} of {len(figures)})")
        coverage = opcode_coverage()
    except (OSError, RuntimeError) as error:
        print(f"sim validate: {error}", file=sys.stderr)
        return 2
    print_results(results, console)
    tested = "tests not installed" if coverage.tested is None else f"{coverage.tested} under test"
    console.print(f"{coverage.known} opcodes simulated, {tested}")
    outside = sum(not result.in_band for result in results)
    aimed = sum(AIM[0] <= result.ratio <= AIM[1] for result in results)
    console.print(f"{aimed} of {len(results)} figures within {AIM[0]}-{AIM[1]}; {outside} left their band")
    if options.json:
        write_json(options.json, results, coverage)
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
